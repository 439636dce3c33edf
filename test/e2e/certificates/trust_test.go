// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// The AICs of the Leaders of these tests.
const (
	aliceAIC = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	bobAIC   = "1.2.156.3088.1.1.34C2.478BDF.3GF547.0GGS"
)

// trustLimit is within what time a change of trust takes effect.
const trustLimit = time.Minute

// endWith checks that each stream ends within the limit, with the refusal of its caller as its last frame, and that no
// further call is carried out over its connection.
func endWith(t *testing.T, streams []*lastingStream, calls map[string]func() string, text string) {
	t.Helper()
	for _, o := range streams {
		code := "-32008"
		if o.name == "gRPC" {
			code = "Unauthenticated"
		}
		if last := o.ended(t, trustLimit); !strings.Contains(last, code) || !strings.Contains(last, text) {
			t.Errorf("%s: the stream ends with %q, want %s", o.name, last, code)
		}
	}
	for name, call := range calls {
		// A connection that was closed meanwhile has a handshake again.
		if got := call(); !strings.Contains(got, "-32008") && strings.Contains(got, "jsonrpc") {
			t.Errorf("%s: a call over the same connection brings %q", name, got)
		}
	}
}

// TestRootTakenOut takes a root out of the file of a pool while streams are open.
func TestRootTakenOut(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	first, second, third := newRoot(t, "first"), newRoot(t, "second"), newRoot(t, "third")
	alice, bob := first.leader(aliceAIC), second.intermediate("below").leader(bobAIC)
	s := site.New(t)
	file := s.InDir("roots.pem")
	writeRoots(t, file, first, second)
	s.Start(site.Config{Trust: "trust_pool aip_file " + file,
		Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers aip a2a\n\t}"})
	kept, calls := openEach(t, s, alice)
	streams, refused := openEach(t, s, bob)
	writeRoots(t, file, first)
	endWith(t, streams, refused, "not trusted any more")
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("a new connection below the root that was taken out: %v", err)
	}
	goesOn(t, s, alice, kept, calls)
	s.WaitFor(t, `a root was taken out of its file.*"subject":"second"`)
	writeRoots(t, file, first, third)
	s.WaitFor(t, `a file of roots has one that is not in use yet.*"subject":"third"`)
	_, stdout, _ := s.Caddy("aip", "doctor", "--config", s.InDir("Caddyfile"))
	if !strings.Contains(stdout, "does not use the roots third yet; run caddy reload --force") {
		t.Errorf("doctor says: %s", stdout)
	}
}

// TestWebhooksWithoutTrust takes a root out of the file of a pool while tasks run for which no connection is open. The
// webhooks of the Leader below it stop, also in the next process, and its task goes on.
func TestWebhooksWithoutTrust(t *testing.T) {
	t.Parallel()
	ends := make(chan struct{}) // closed when the agent has finished its tasks
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		state := "completed"
		select {
		case <-ends:
		default:
			if state = "working"; h.Method != "tasks/get" {
				<-r.Context().Done() // until the gateway is killed
				return
			}
		}
		site.WriteTask(w, h, state, "done")
	})
	first, second := newRoot(t, "first"), newRoot(t, "second")
	up := site.NewSink(t)
	s := site.New(t)
	file := s.InDir("roots.pem")
	writeRoots(t, file, first, second)
	c := site.Config{Notify: site.AllowHere, Trust: "trust_pool aip_file " + file,
		Handle: "aip_gateway a2a/legacy " + agent.URL}
	s.Start(c)
	pairs := map[string]tls.Certificate{"alice": first.leader(aliceAIC), "bob": second.leader(bobAIC)}
	leaders := make(map[string]*site.Caller)
	streams, leaves := map[string]context.Context{}, map[string]context.CancelFunc{} // by the paths of webhooks
	for name := range pairs {
		streams["/"+name], leaves["/"+name] = context.WithCancel(site.Within(t, site.Patience))
	}
	up.Answers(func(n *site.Notice) site.Response {
		leaves[n.Path]()
		return site.Taken()
	})
	for name, pair := range pairs {
		l := site.CallerWith(t, s.URL(), pair.Leaf.Subject.CommonName, pair)
		leaders[name] = l
		l.SetHook(site.Hook{URL: up.Origin() + "/" + name, Token: "t", TaskID: name})
		f := &site.Follower{Caller: l, ID: name}
		if err := f.FollowTo(streams["/"+name], "hello", "awaiting-completion"); err == nil {
			t.Errorf("%s: the task has ended already", name)
		}
	}
	writeRoots(t, file, first)
	s.WaitFor(t, `its webhooks stop, and its groups are left.*"leader":"`+bobAIC+`"`)
	s.Kill()
	before := len(up.Arrived("/bob"))
	s.Run(s.InDir("Caddyfile"))
	close(ends)
	site.Eventually(t, "the webhook of the other Leader is notified of its result", func() bool {
		return slices.ContainsFunc(up.Arrived("/alice"), func(n site.Notice) bool {
			return n.Task.Status.State == task.AwaitingCompletion
		})
	})
	site.Eventually(t, "the task of the Leader without trust has ended", func() bool {
		return slices.Equal(s.ListedTasks(url.Values{"task": {"bob"}}), []string{"bob awaiting-completion"})
	})
	if got := up.Arrived("/bob"); len(got) != before {
		t.Errorf("the webhook of the Leader without trust was notified %d times, and before %d times", len(got), before)
	}
	writeRoots(t, file, first, second)
	waits, arrives := context.WithCancel(site.Within(t, 2*site.Patience)) // it may take a minute
	up.Answers(func(n *site.Notice) site.Response {
		if n.Path == "/bob" {
			arrives()
		}
		return site.Taken()
	})
	if trouble := s.Reload(c); trouble != "" {
		t.Fatal(trouble)
	}
	if got, err := leaders["bob"].Again(site.CommandCall(task.Get, "bob")); err != nil {
		t.Errorf("the task of the Leader without trust: %v", site.Explain(err))
	} else if got.Status.State != task.AwaitingCompletion {
		t.Errorf("the task of the Leader without trust is %s", got.Status.State)
	}
	<-waits.Done()
	if len(up.Arrived("/bob")) == before {
		t.Error("its webhook is not notified, though its certificate counts again")
	}
}
