// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestIdentity calls with certificates of all kinds, and in the name of others.
//
// Promise: another party acts as a Leader
func TestIdentity(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	p := site.Certificates(t)
	aic, other := string(p.Leader.AIC), string(p.LeaderV1.AIC)
	s := site.Serve(t, site.Config{Mode: "verify_if_given", Handle: `
	handle_path /open* {
		aip_gateway a2a/legacy ` + agent.URL + `
	}
	handle_path /allow* {
		aip_gateway a2a/legacy ` + agent.URL + ` {
			allow ` + aic + `
		}
	}
	handle_path /optional* {
		aip_gateway a2a/legacy ` + agent.URL + ` {
			identity optional
		}
	}`})
	callers := map[string]func(mount, sender string) *site.Caller{
		"v02.00": func(mount, sender string) *site.Caller {
			return site.CallerWith(t, mount, sender, devpkitest.KeyPair(t, p.Leader))
		},
		"v01.00": func(mount, sender string) *site.Caller {
			return site.CallerWith(t, mount, sender, devpkitest.KeyPair(t, p.LeaderV1))
		},
		"none": func(mount, sender string) *site.Caller { return site.CallerWith(t, mount, sender) },
		"no AIC": func(mount, sender string) *site.Caller {
			return site.CallerWith(t, mount, sender, site.Issue(t, "leader.example.com"))
		},
		"the AIC in a name only": func(mount, sender string) *site.Caller {
			return site.CallerWith(t, mount, sender, site.Issue(t, "leader.example.com", "acps://"+aic))
		},
		"two AICs": func(mount, sender string) *site.Caller {
			return site.CallerWith(t, mount, sender, site.Issue(t, aic, "acps://"+other))
		},
		"bare": func(mount, sender string) *site.Caller { return site.CallerWith(t, mount, sender, site.Issue(t, aic)) },
	}
	for _, tc := range []struct {
		mount, certificate, sender string
		want                       int64 // 0 means a task
	}{
		{"/open", "v02.00", aic, 0},
		{"/open", "v02.00", strings.ToLower(aic), 0},
		{"/open", "bare", aic, 0},
		{"/open", "v02.00", other, -32009},
		{"/open", "v02.00", "anyone", -32009},
		{"/open", "v01.00", other, 0},
		{"/open", "v01.00", strings.ToLower(other), 0},
		{"/open", "v01.00", other + ".acps.pub", -32009},
		{"/open", "v01.00", aic, -32009},
		{"/open", "none", aic, -32008},
		{"/open", "no AIC", aic, -32008},
		{"/open", "no AIC", "leader.example.com", -32008},
		{"/open", "the AIC in a name only", aic, -32008},
		{"/open", "two AICs", aic, -32008},
		{"/allow", "v02.00", aic, 0},
		{"/allow", "v01.00", other, -32009},
		{"/allow", "v01.00", aic, -32009},
		{"/allow", "none", aic, -32008},
		{"/optional", "none", aic, 0},
		{"/optional", "v02.00", aic, 0},
		{"/optional", "v02.00", other, -32009},
		{"/optional", "no AIC", aic, -32008},
	} {
		name := tc.mount + " " + tc.certificate + " as " + tc.sender
		c := callers[tc.certificate](s.URL()+tc.mount, tc.sender)
		before := len(agent.Requests(""))
		got, err := c.Try(site.StartCall("task of "+name, "hello"))
		var refusal *leader.Error
		switch {
		case tc.want == 0 && (err != nil || got.Status.State != task.AwaitingCompletion):
			t.Errorf("%s: %v, want a task", name, site.Explain(err))
		case tc.want != 0 && (!errors.As(err, &refusal) || refusal.Code != tc.want):
			t.Errorf("%s: %v, want %d", name, err, tc.want)
		}
		if asked := len(agent.Requests("")) > before; asked != (tc.want == 0) {
			t.Errorf("%s: the agent was asked: %t", name, asked)
		}
	}
}

// TestWithoutCertificate proves what Caddy's modes of client_auth mean for a caller without a certificate.
//
// Promise: a client without a certificate
func TestWithoutCertificate(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	aic := string(site.Certificates(t).Leader.AIC)
	strict := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	// In TLS 1.3 a client learns of the refusal by its first read.
	conn, err := tls.Dial("tcp", strings.TrimPrefix(strict.URL(), "https://"), &tls.Config{RootCAs: site.Trusted(t)})
	if err == nil {
		conn.SetDeadline(time.Now().Add(site.Patience))
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("require_and_verify: %v, want a failed handshake", err)
	}
	if got, err := site.CallerWith(t, strict.URL(), aic).Try(site.StartCall("one", "hello")); err == nil {
		t.Errorf("require_and_verify: %+v, want a failed handshake", site.AnswerOf(got))
	}
	// With mode request, Caddy asks for a certificate and verifies none.
	lenient := site.Serve(t, site.Config{Mode: "request", Handle: "aip_gateway a2a/legacy " + agent.URL})
	if got := site.CallerWith(t, lenient.URL(), aic).Refused(site.StartCall("one", "hello")); got.Code != -32008 {
		t.Errorf("request, without a certificate: %s", got.Raw)
	}
	got := site.LeaderOf(t, lenient.URL()).Refused(site.StartCall("one", "hello"))
	if details, _ := site.Data(t, got.Data)["details"].(string); got.Code != -32008 ||
		!strings.Contains(details, "enable the verification of client certificates") {
		t.Errorf("request, with a certificate that was not verified: %s", got.Raw)
	}
	if n := len(agent.Requests("")); n != 0 {
		t.Errorf("the agent was asked %d times, want never", n)
	}
}

func TestIdentityOff(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Mode: "request", Handle: "aip_gateway a2a/legacy " + agent.URL + ` {
		identity off
	}`})
	if got := site.CallerWith(t, s.URL(), "who I say").Start("one", "hello"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("got %+v", site.AnswerOf(got))
	}
	if got := site.CallerWith(t, s.URL(), "another Leader").Refused(site.CommandCall(task.Get,
		"one")); got.Code != -32001 {
		t.Errorf("got %s", got.Raw)
	}
	s.Stop(t) // then all of the log is here
	found := false
	for line := range strings.Lines(s.Out.String()) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Level == "warn" &&
			strings.Contains(entry.Msg, "identity is off") {
			found = true
		}
	}
	if !found {
		t.Error("the log does not warn that identity is off")
	}
}

// TestLeadersAreIsolated proves that a task exists for the Leader only that started it.
//
// Promise: a Leader reads or changes a task of another Leader
// Promise: Leader
func TestLeadersAreIsolated(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	p := site.Certificates(t)
	one := site.CallerWith(t, s.URL(), string(p.Leader.AIC), devpkitest.KeyPair(t, p.Leader))
	two := site.CallerWith(t, s.URL(), string(p.LeaderV1.AIC), devpkitest.KeyPair(t, p.LeaderV1))
	one.Start("mine", "hello")
	before := one.Get("mine")
	for _, command := range []task.Command{task.Get, task.Continue, task.Complete, task.Cancel} {
		foreign := two.Refused(site.CommandCall(command, "mine", "hi"))
		unknown := two.Refused(site.CommandCall(command, "none", "hi"))
		if foreign.Code != -32001 || unknown.Code != -32001 {
			t.Errorf("%s of another's task: %s; of none: %s", command, foreign.Raw, unknown.Raw)
		}
		if diff := cmp.Diff(strings.ReplaceAll(string(unknown.Data), "none", "mine"), string(foreign.Data)); diff != "" {
			t.Errorf("%s distinguishes another's task from none (-none +another's):\n%s", command, diff)
		}
	}
	if diff := cmp.Diff(before, one.Get("mine")); diff != "" {
		t.Errorf("the task has changed (-before +after):\n%s", diff)
	}

	two.Start("mine", "hello")
	two.Complete("mine")
	if diff := cmp.Diff(before, one.Get("mine")); diff != "" {
		t.Errorf("two Leaders meet in one taskId (-before +after):\n%s", diff)
	}
	asked := agent.Requests("tasks/send")
	if len(asked) != 2 || asked[0].Params.ID == asked[1].Params.ID || asked[0].Params.Session == asked[1].Params.Session {
		t.Errorf("the agent cannot distinguish two Leaders: %+v", asked)
	}
	for _, h := range asked {
		if strings.Contains(h.Params.ID, "mine") || strings.Contains(h.Params.ID, one.Sender) {
			t.Errorf("the agent's id %q reveals the Leader", h.Params.ID)
		}
	}
}
