// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/notify/sign/signtest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWebhook proves that notifications have the order, the content and the header fields that they should.
//
// Promise: forged notifications to a receiver
func TestWebhook(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		site.WriteTask(w, h, "completed", fmt.Sprintf("the work of %d bytes", len(h.Body)))
	})
	up := site.NewSink(t)
	s := site.New(t)
	key := func(args ...string) (secret, public string) {
		_, out, _ := s.Caddy(append([]string{"aip", "webhook-key"}, args...)...)
		m := regexp.MustCompile(`^signing_key  (\S+)\n(?:public       (\S+)\n)?$`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("webhook-key says %q", out)
		}
		return m[1], m[2]
	}
	private, public := key()
	shared, _ := key("--hmac")
	s.Env = []string{"AIP_TEST_KEY=" + private}
	s.Start(
		site.Config{
			Notify: site.AllowHere + "signing_key {env.AIP_TEST_KEY}\nsigning_key " + shared,
			Handle: "aip_gateway a2a/legacy " + agent.URL,
		},
	)
	leader := site.LeaderOf(t, s.URL())

	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	tokens := map[string]string{"/one": "a token of one", "/two": "two"}
	var named site.Hook // by the start; the other one is notified as well
	for path, token := range tokens {
		named = leader.SetHook(site.Hook{URL: up.Origin() + path, Token: token, TaskID: "a"})
	}
	// The answer to a command is the same as the notification of the state in the answer.
	answers := []*task.Task{notifyStart(leader, "a", named.ID, "traceparent", "00-"+traceID+"-00f067aa0ba902b7-01")}
	answers = append(answers, leader.GoOn("a", "more"), leader.Complete("a"))
	history := leader.Get("a").StatusHistory
	for path, token := range tokens {
		up.WaitForChanges(path, history)
		up.InOrder(path)
		begun := 0 // turns
		for _, n := range up.Arrived(path) {
			if n.Task.Status.State == task.Working {
				begun++
			}
			want := map[string]string{"Content-Type": "application/json", "X-Acps-Aip-Notification-Token": token}
			for name, value := range want {
				if got := n.Header.Get(name); got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
			}
			signature, stamp := n.Header.Get("webhook-signature"), n.Header.Get("webhook-timestamp")
			for _, key := range []string{public, shared} {
				if err := signtest.Verify(signature, n.ID, stamp, n.Body, n.At, key); err != nil {
					t.Errorf("the signature %q is not one of %s: %v", signature, key, err)
				}
				if signtest.Verify(signature, n.ID, stamp, append(n.Body[:len(n.Body):len(n.Body)], ' '), n.At, key) == nil {
					t.Error("the signature is one of another body, too")
				}
			}
			if len(strings.Fields(signature)) != 2 {
				t.Errorf("two keys make the signatures %q", signature)
			}
			// The first turn is caused by the start, the second by a request without a trace.
			parent := regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`).
				FindStringSubmatch(n.Header.Get("traceparent"))
			inFirst := begun < 2 && n.Task.Status.State != task.Completed
			if parent == nil || (parent[1] == traceID) != inFirst {
				t.Errorf("the traceparent of %s is %q", n.Task.Status.State, n.Header.Get("traceparent"))
			}
			checkBody(t, &n, answers)
		}
	}

	// Of two webhooks, each notification has an id of its own.
	seen := make(map[string]bool)
	for _, n := range up.Arrived("") {
		if seen[n.ID] || n.ID == "" {
			t.Errorf("the webhook-id %q came twice", n.ID)
		}
		seen[n.ID] = true
	}
}

// checkBody demands that the body of a notification is the Task as it was then, as far as answers show it, with its
// products and without its histories.
func checkBody(t *testing.T, n *site.Notice, answers []*task.Task) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(n.Body, &members); err != nil {
		t.Fatal(err)
	}
	if members["messageHistory"] != nil || members["statusHistory"] != nil || string(members["type"]) != `"task"` {
		t.Errorf("the body is %s", n.Body)
	}
	var before *task.Task
	for _, answer := range answers {
		if answer.Status.ChangedAt.Equal(n.Task.Status.ChangedAt) {
			if diff := cmp.Diff(answer, &n.Task); diff != "" {
				t.Errorf("the body in state %s (-answer +body):\n%s", n.Task.Status.State, diff)
			}
			return
		}
		if answer.Status.ChangedAt.Before(n.Task.Status.ChangedAt) {
			before = answer
		}
	}
	var products []string
	if before != nil && n.Task.Status.State != task.Working { // a continue withdraws what was offered
		products = site.Product(before)
	}
	if diff := cmp.Diff(products, site.Product(&n.Task)); diff != "" || n.Task.SessionID != "session-of-a" {
		t.Errorf("the body in state %s is %s; its products (-want +got):\n%s", n.Task.Status.State, n.Body, diff)
	}
}

// TestWebhookTLS delivers by https, to a receiver that the gateway trusts, and not to the same one where it does not.
//
// Promise: a third party reads the network
func TestWebhookTLS(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	p := site.Certificates(t)
	for name, env := range map[string][]string{"trusted": {"SSL_CERT_FILE=" + p.CA.Cert}, "not trusted": nil} {
		up := site.NewTLSSink(t, &tls.Config{Certificates: []tls.Certificate{devpkitest.KeyPair(t, p.Server)},
			MinVersion: tls.VersionTLS12})
		s := site.New(t)
		s.Env = env
		s.Start(site.Config{Store: "store memory", Notify: site.AllowHere + "attempts 1",
			Handle: "aip_gateway a2a/legacy " + agent.URL})
		history := site.BeginWithWebhook(site.LeaderOf(t, s.URL()), "a", "https://localhost"+up.Address[len("127.0.0.1"):]+
			"/tls")
		idle(s)
		if env != nil {
			up.WaitForChanges("/tls", history)
			continue
		}
		up.WaitForChanges("/tls", nil)
		for _, d := range s.Deliveries("status=dead") {
			if !strings.Contains(d.LastError, "certificate") {
				t.Errorf("%s: the last error is %q", name, d.LastError)
			}
		}
	}
}

// TestWebhookFaults has receivers fail in all the ways that there are, in random orders.
//
// Promise: receiver of webhooks, broker of a group
func TestWebhookFaults(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	elsewhere := site.NewSink(t)
	s := site.Serve(t, site.Config{Notify: site.AllowHere + "timeout 1s\nattempts 100",
		Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	deck := func() []site.Response {
		return []site.Response{
			site.Hangs(), resets(), slowly(), verbosely(200), verbosely(500), endlessly(),
			saysOnly(""), saysOnly("HTTP/1.1 20"),
			saysOnly(
				"hello\r\n\r\n",
			), saysOnly("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), site.Refusal(500), site.Refusal(404),
			site.Refusal(429),
			site.Refusal(
				301,
				"Location: "+elsewhere.Origin()+"/moved\r\n",
			), site.Refusal(307, "Location: "+elsewhere.Origin()+"/moved\r\n"),
			site.Refusal(308, "Location: /elsewhere\r\n"), site.Refusal(503, "Retry-After: 86400\r\n"),
		}
	}
	seed := site.AnySeed(t)
	type one struct {
		*site.Sink
		history []task.Status
	}
	var all []one
	for i := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		cards := deck()
		random.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
		to := site.NewSink(t)
		to.Answers(func(*site.Notice) site.Response {
			if len(cards) == 0 {
				return site.Taken()
			}
			next := cards[0]
			cards = cards[1:]
			return next
		})
		history := site.LeadWithWebhook(leader, fmt.Sprint("task ", i), to.Origin()+"/faults")
		all = append(all, one{to, history})
	}
	for _, to := range all {
		to.Nudged("/faults", to.history, func() { s.Enable(to.Origin()) })
		to.InOrder("/faults")
		if n := len(to.Arrived("/elsewhere")); n != 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	}
	if n := len(elsewhere.Arrived("")); n != 0 {
		t.Errorf("a redirect was followed to another host %d times", n)
	}
	idle(s)
	if left := s.Deliveries(""); len(left) != 0 {
		t.Errorf("there is still to be delivered: %+v", left)
	}
}

// TestWebhookGone proves that a webhook whose receiver wants nothing more is left alone until it is set again.
func TestWebhookGone(t *testing.T) {
	t.Parallel()
	agent, to := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.Serve(t, site.Config{Notify: site.AllowHere, Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	to.Answers(func(n *site.Notice) site.Response {
		if n.Path == "/gone" {
			return site.Refusal(410)
		}
		return site.Taken()
	})
	gone := leader.SetHook(site.Hook{URL: to.Origin() + "/gone", Token: "t", TaskID: "a"})
	leader.SetHook(site.Hook{URL: to.Origin() + "/other", Token: "t", TaskID: "a"})
	leader.Start("a", "hello")
	site.Eventually(t, "the webhook is disabled", func() bool { return len(s.Deliveries("status=disabled")) == 3 })
	leader.GoOn("a", "more")
	to.WaitForChanges("/other", leader.Get("a").StatusHistory)
	idle(s)
	if n := len(to.Arrived("/gone")); n != 1 {
		t.Errorf("who answered 410 was asked %d times", n)
	}
	if diff := cmp.Diff([]site.Hook{gone}, leader.Hooks("a", gone.ID)); diff != "" {
		t.Errorf("the disabled webhook (-want +got):\n%s", diff)
	}
	to.Answers(site.Always(site.Taken()))
	leader.SetHook(gone)
	leader.Complete("a")
	to.WaitForChanges("/gone", leader.Get("a").StatusHistory)
	to.InOrder("/gone")
}

// TestWebhookRetryAfter proves that a receiver is left alone for as long as it asks.
func TestWebhookRetryAfter(t *testing.T) {
	t.Parallel()
	const wait = 2 * time.Second // longer than what comes after a first failure anyway
	agent, to := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.Serve(t, site.Config{Store: "store memory", Notify: site.AllowHere,
		Handle: "aip_gateway a2a/legacy " + agent.URL})
	var asked time.Time
	to.Answers(func(n *site.Notice) site.Response {
		switch {
		case asked.IsZero():
			asked = time.Now()
			return site.Refusal(429, "Retry-After: 2\r\n")
		case time.Since(asked) < wait:
			t.Errorf("%s was sent %v after the receiver had asked for %v", n.Task.Status.State, time.Since(asked), wait)
		}
		return site.Taken()
	})
	leader := site.LeaderOf(t, s.URL())
	history := site.LeadWithWebhook(leader, "a", to.Origin()+"/busy")
	site.Eventually(t, "the receiver has asked for it", func() bool { return len(s.Deliveries("status=failing")) > 0 })
	also := site.LeadWithWebhook(leader, "b", to.Origin()+"/busy/too") // all of the endpoint is left alone
	to.WaitForChanges("/busy", history)
	to.WaitForChanges("/busy/too", also)
}

// TestWebhookReload changes the configuration while there is much to be delivered.
func TestWebhookReload(t *testing.T) {
	t.Parallel()
	agent, to := site.NewFakeAgent(t, nil), site.NewSink(t)
	var keys [2]sign.Key
	conf := func(i int, timeout string) site.Config {
		secret := sign.Generate()
		var err error
		if keys[i], err = sign.Parse(secret); err != nil {
			t.Fatal(err)
		}
		return site.Config{
			Notify: site.AllowHere + "timeout " + timeout + "\nsigning_key " + secret,
			Handle: "aip_gateway a2a/legacy " + agent.URL,
		}
	}
	signed := func(n *site.Notice, i int) bool {
		return signtest.Verify(
			n.Header.Get("webhook-signature"),
			n.ID,
			n.Header.Get("webhook-timestamp"),
			n.Body,
			n.At,
			keys[i].Public(),
		) == nil
	}
	s := site.New(t)
	s.Start(conf(0, "1s"))
	to.Answers(site.Always(site.Hangs()))
	history := site.LeadWithWebhook(site.LeaderOf(t, s.URL()), "a", to.Origin()+"/late")
	site.Eventually(t, "the first attempt has failed", func() bool {
		d := s.Deliveries("status=failing")
		return len(d) > 0 && strings.Contains(d[0].LastError, "within 1s")
	})
	after := conf(1, "1m")
	slow := false
	to.Answers(func(n *site.Notice) site.Response {
		switch {
		case signed(n, 0):
			return site.Hangs()
		case slow:
			return site.Taken()
		}
		slow = true
		return site.Response{Taken: true, Write: func(conn net.Conn) bool {
			// For the old timeout, that is too long: the gateway would hang up.
			_ = conn.SetReadDeadline(time.Now().Add(1500 * time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				return false
			}
			_ = conn.SetReadDeadline(time.Time{})
			return site.Taken().Write(conn)
		}}
	})
	if why := s.Reload(after); why != "" {
		t.Fatal(why)
	}
	to.Nudged("/late", history, func() { s.Enable(to.Origin()) })
	idle(s)
	renewed := 0
	for _, n := range to.Arrived("/late") {
		switch old, young := signed(&n, 0), signed(&n, 1); {
		case old == young || old && renewed > 0:
			t.Errorf(
				"%s is signed by the old key: %t, by the new one: %t, after %d by that",
				n.Task.Status.State,
				old,
				young,
				renewed,
			)
		case young:
			renewed++
		}
	}
	if renewed != len(history) {
		t.Errorf("%d changes took %d attempts after the reload", len(history), renewed)
	}
}
