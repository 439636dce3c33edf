// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// loopback is the network for tests.
var loopback = egress.Dialer{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}

// serve returns a decision point with the answers of a handler.
func serve(t *testing.T, h http.HandlerFunc) *Point {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	p, err := New(Config{URL: s.URL + "/v1/data/aip/allow", Timeout: 5 * time.Second, Dialer: loopback})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// said is the result of Decide, in one line.
func said(err error) string {
	denied, ok := errors.AsType[*Denied](err)
	switch {
	case err == nil:
		return "allow"
	case !ok:
		return "error: " + err.Error()
	case denied.Down:
		return "down: " + denied.Err.Error()
	}
	return strings.TrimSpace("deny " + denied.Reason)
}

const aicV1, aicV2 = "10001000011K912345E789ABCDEF2353", "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"

// start of a task by an agent.
func start() *policy.Call {
	return &policy.Call{
		Peer:   &identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: aicV1},
		Leader: aicV1, Dialect: "aip", Command: "start", Method: "rpc",
		Message: &task.Message{Params: []byte(`{"skillId":"data.export"}`)},
	}
}

// TestAnswers: only an explicit yes is a yes, and an answer without a decision is no decision.
func TestAnswers(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{`{"result":true}`, "allow"},
		{`{"result":false}`, "deny"},
		{`{"result":{"allow":true}}`, "allow"},
		{`{"result":{"allowed":true,"reasonCode":"ok","obligations":{}}}`, "allow"},
		{`{"result":{"allow":true,"obligations":null}}`, "allow"},
		{`{"result":{"allow":false,"reason":"no\nrole"}}`, "deny norole"},
		{`{"result":{"allow":true,"allowed":false,"reasonCode":"both"}}`, "deny both"},
		{`{"result":{"allow":true,"obligations":{"log":true}}}`,
			"deny it allows the call with obligations, and this gateway knows none"},
		{`{"result":{"allow":true,"obligations":["watermark"]}}`,
			"deny it allows the call with obligations, and this gateway knows none"},
		{`{"result":{"allow":true,"obligations":"log"}}`,
			"deny it allows the call with obligations, and this gateway knows none"},
		{`{"result":true,"decision_id":"x","warning":{"code":"api_usage_warning"}}`, "allow"},
		{`{}`, "down: the document is undefined"},
		{`{"result":null}`, "down: the result is neither a boolean nor an object"},
		{`{"result":"true"}`, "down: the result is neither a boolean nor an object"},
		{`{"result":1}`, "down: the result is neither a boolean nor an object"},
		{`{"result":[true]}`, "down: the result is neither a boolean nor an object"},
		{`{"result":{}}`, "down: the result has no member allow"},
		{`{"result":{"allow":"yes"}}`, "down: the result has a member allow that is no boolean"},
		{`{"result":{"allow":null}}`, "down: the result has a member allow that is no boolean"},
		{`{"result":{"ALLOW":true}}`, "down: the result has no member allow"},
		{`{"Result":true}`, "down: the document is undefined"},
		{`{"result":false,"result":true}`, "down: its answer is no JSON"},
		{`true`, "down: the document is undefined"},
		{`{"result":true`, "down: its answer is no JSON"},
		{``, "down: its answer is no JSON"},
		{`{"result":true}` + strings.Repeat(" ", maxAnswer), "down: its answer has more than 65536 bytes"},
	} {
		p := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.body) })
		if got := said(p.Decide(t.Context(), start())); got != tc.want {
			t.Errorf("%.80s: %s, want %s", tc.body, got, tc.want)
		}
	}
}

// TestNoDecision: an error, a redirect and silence are no decision, and only a caller's leaving is no fault of the
// decision point.
func TestNoDecision(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, `{"result":true}`)
		}, "down: its answer has the status 500"},
		"created": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			_, _ = io.WriteString(w, `{"result":true}`)
		}, "down: its answer has the status 201"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "down: its answer has the status 307"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"result":true}`)
		}, "down: unexpected EOF"},
	} {
		if got := said(serve(t, tc.handler).Decide(t.Context(), start())); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	silent := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so the end of the connection is seen
		<-r.Context().Done()
	})
	left, leave := context.WithCancel(t.Context())
	leave()
	if err := silent.Decide(left, start()); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left gets %v", err)
	}
	silent.timeout = time.Second
	if got, want := said(silent.Decide(t.Context(), start())), "down: context deadline exceeded"; got != want {
		t.Errorf("silence: %s, want %s", got, want)
	}
	p, err := New(Config{URL: fmt.Sprintf("http://127.0.0.1:%d/", freeport.Closed(t)), Dialer: loopback})
	if err != nil {
		t.Fatal(err)
	}
	if got := said(p.Decide(t.Context(), start())); !strings.HasPrefix(got, "down: dial tcp ") {
		t.Errorf("nobody there: %s", got)
	}
	if err := p.Reach(t.Context()); err == nil {
		t.Error("it is said to be reached")
	}
	silent.timeout = time.Minute
	if err := silent.Reach(t.Context()); err != nil {
		t.Errorf("it cannot be reached: %v", err)
	}
}

// TestInput: the question is the one of AAC v02.02 §8.5, and holds neither a message nor a token.
//
// Promise: decision point of a policy
func TestInput(t *testing.T) {
	cert := &x509.Certificate{
		Subject:      pkix.Name{CommonName: aicV1, Organization: []string{"ACME"}, Country: []string{"CN"}},
		Issuer:       pkix.Name{CommonName: "Agent CA"},
		SerialNumber: big.NewInt(0x1f2e),
	}
	token := func(subject, more string) *identity.Peer {
		return &identity.Peer{Proof: identity.ByToken, Kind: "jwt", ID: "https://idp.example.com|" + subject,
			Claims: &identity.Claims{Issuer: "https://idp.example.com", Subject: subject, Scopes: []string{"start"},
				JSON: `{"iss":"https://idp.example.com","exp":1,"jti":"secret","roles":["member",1]` + more + `}`}}
	}
	for name, tc := range map[string]struct {
		change func(*policy.Call)
		want   string
	}{
		"an agent": {func(c *policy.Call) { c.Peer.Chains = [][]*x509.Certificate{{cert}} }, `{
			"primarySubject": {"id": "agent:10001000011K912345E789ABCDEF2353", "type": "agent", "attributes": {
				"proof": "certificate", "leader": "10001000011K912345E789ABCDEF2353",
				"certificate": {"issuer": "Agent CA", "serial": "1f2e", "organization": ["ACME"], "country": ["CN"]}}},
			"actor": {"immediateActor": {"id": "agent:10001000011K912345E789ABCDEF2353", "type": "agent"},
				"actorChain": ["agent:10001000011K912345E789ABCDEF2353"]},
			"action": "task.start",
			"resource": {"agentAic": "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "skillId": "data.export"},
			"environment": {"transport": "aip.direct", "dialect": "aip", "method": "rpc"}
		}`},
		"an agent for a human": {func(c *policy.Call) {
			c.Peer.Claims = token("human:https://idp.example.com#user-123", `,"acps_delegation_id":"dlg-123",`+
				`"act":{"sub":"agent:`+aicV1+`","act":{"sub":"agent:two","act":{"sub":"agent:one"}}}`).Claims
		}, `{
			"primarySubject": {"id": "human:https://idp.example.com#user-123", "type": "human", "roles": ["member"],
				"scopes": ["start"], "attributes": {"claims": {
					"iss": "https://idp.example.com", "roles": ["member", 1], "acps_delegation_id": "dlg-123"}}},
			"actor": {"immediateActor": {"id": "agent:10001000011K912345E789ABCDEF2353", "type": "agent",
				"attributes": {"proof": "certificate", "leader": "10001000011K912345E789ABCDEF2353"}},
				"actorChain": ["agent:one", "agent:two", "agent:10001000011K912345E789ABCDEF2353"],
				"delegationId": "dlg-123"},
			"action": "task.start",
			"resource": {"agentAic": "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "skillId": "data.export"},
			"environment": {"transport": "aip.direct", "dialect": "aip", "method": "rpc"}
		}`},
		"a human": {func(c *policy.Call) {
			c.Peer, c.Leader, c.Mount = token("user-123", ""), "jwt:https://idp.example.com|user-123", "/one"
			c.Dialect, c.Command, c.Method, c.Stream = "a2a/1.0", "re-stream", "SubscribeToTask", true
			c.Task = "t1"
		}, `{
			"primarySubject": {"id": "human:https://idp.example.com#user-123", "type": "human", "roles": ["member"],
				"scopes": ["start"], "attributes": {
					"proof": "token", "leader": "jwt:https://idp.example.com|user-123",
					"claims": {"iss": "https://idp.example.com", "roles": ["member", 1]}}},
			"actor": {"immediateActor": {"id": "human:https://idp.example.com#user-123", "type": "human"},
				"actorChain": []},
			"action": "task.re-stream",
			"resource": {"agentAic": "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "mount": "/one", "skillId": "data.export",
				"taskId": "t1"},
			"environment": {"transport": "a2a.stream", "dialect": "a2a/1.0", "method": "SubscribeToTask"}
		}`},
		"a service": {func(c *policy.Call) {
			c.Peer, c.Leader = token("agent:x", `,"acps_subject_type":"service"`), "jwt:…"
			c.Message, c.Command, c.Task = nil, "set-webhook", "t1"
		}, `{
			"primarySubject": {"id": "service:https://idp.example.com#agent:x", "type": "service", "roles": ["member"],
				"scopes": ["start"], "attributes": {"proof": "token", "leader": "jwt:…",
					"claims": {"iss": "https://idp.example.com", "roles": ["member", 1], "acps_subject_type": "service"}}},
			"actor": {"immediateActor": {"id": "service:https://idp.example.com#agent:x", "type": "service"},
				"actorChain": ["service:https://idp.example.com#agent:x"]},
			"action": "notification.set",
			"resource": {"agentAic": "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "taskId": "t1"},
			"environment": {"transport": "aip.direct", "dialect": "aip", "method": "rpc"}
		}`},
		"a group": {func(c *policy.Call) {
			c.Peer = &identity.Peer{Proof: identity.ByBroker, Kind: identity.AIDKind, ID: "alice.aid.pub"}
			c.Leader, c.Method, c.Command, c.Message.GroupID = "aid:alice.aid.pub", "", "cancel", "g1"
			c.Task = "t1"
		}, `{
			"primarySubject": {"id": "aid:alice.aid.pub", "type": "agent",
				"attributes": {"proof": "broker", "leader": "aid:alice.aid.pub"}},
			"actor": {"immediateActor": {"id": "aid:alice.aid.pub", "type": "agent"}, "actorChain": ["aid:alice.aid.pub"]},
			"action": "task.cancel",
			"resource": {"agentAic": "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "skillId": "data.export", "taskId": "t1",
				"groupId": "g1"},
			"environment": {"transport": "aip.group", "dialect": "aip"}
		}`},
		"nobody": {func(c *policy.Call) { c.Peer, c.Leader = new(identity.Peer), "unverified:x" }, `{
			"primarySubject": {"id": "unverified:x", "type": "anonymous"},
			"actor": {"immediateActor": {"id": "unverified:x", "type": "anonymous"}, "actorChain": ["unverified:x"]},
			"action": "task.start",
			"resource": {"agentAic": "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "skillId": "data.export"},
			"environment": {"transport": "aip.direct", "dialect": "aip", "method": "rpc"}
		}`},
	} {
		t.Run(name, func(t *testing.T) {
			var got map[string]map[string]any
			var header http.Header
			p := serve(t, func(w http.ResponseWriter, r *http.Request) {
				header = r.Header
				if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != "POST" ||
					r.URL.Path != "/v1/data/aip/allow" {
					t.Errorf("%s %s: %v", r.Method, r.URL, err)
				}
				_, _ = io.WriteString(w, `{"result":true}`)
			})
			p.aic = aicV2
			c := start()
			c.Message.DataItems = []task.DataItem{{Kind: "text", Text: "private"}}
			tc.change(c)
			if err := p.Decide(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			around := got["input"]["environment"].(map[string]any)
			when, err := time.Parse(time.RFC3339, around["time"].(string))
			if err != nil || time.Since(when) > time.Minute {
				t.Errorf("the time is %v, %v", when, err)
			}
			delete(around, "time")
			var want map[string]any
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]map[string]any{"input": want}, got); diff != "" {
				t.Errorf("the question (-want +got):\n%s", diff)
			}
			names := slices.Sorted(maps.Keys(header))
			if diff := cmp.Diff([]string{"Content-Length", "Content-Type", "User-Agent"}, names); diff != "" {
				t.Errorf("the header (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCache: an answer is used again for as long as its Cache-Control says, and only for the same question.
func TestCache(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		control, status := "", 200
		p, err := New(Config{URL: "https://opa.example.com/v1/data/aip/allow"})
		if err != nil {
			t.Fatal(err)
		}
		p.client.Transport = roundTripper(func(*http.Request) *http.Response {
			body := fmt.Sprintf(`{"result":{"allow":%t,"reason":"%d"}}`, asked.Add(1)%2 == 1, asked.Load())
			return &http.Response{StatusCode: status, Header: http.Header{"Cache-Control": {control}},
				Body: io.NopCloser(strings.NewReader(body))}
		})
		for _, step := range []struct {
			control string
			after   time.Duration
			command string
			want    string
		}{
			{"", 0, "start", "allow"},
			{"max-age=60", 0, "start", "deny 2"},
			{"max-age=60", 59 * time.Second, "start", "deny 2"},
			{"max-age=60", 0, "cancel", "allow"},
			{"no-store, max-age=60", time.Second, "start", "deny 4"},
			{"no-store, max-age=60", 0, "start", "allow"},
			{"max-age=60", 0, "cancel", "allow"}, // of the third answer
		} {
			control = step.control
			bubble.Pass(step.after)
			c := start()
			c.Command = step.command
			if got := said(p.Decide(t.Context(), c)); got != step.want {
				t.Fatalf("%+v: %s", step, got)
			}
		}
		status, control = 500, "max-age=60"
		for n := asked.Load(); n < 7; n++ {
			if got, want := said(p.Decide(t.Context(), start())), "down: its answer has the status 500"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if asked.Load() != 7 {
			t.Errorf("it was asked %d times", asked.Load())
		}
	})
}

// TestShare: a Leader without answers to its questions waits for its own, and the questions of others are asked.
//
// Promise: a Leader uses more than its share
func TestShare(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var open atomic.Int64
		p, err := New(Config{URL: "https://opa.example.com/v1/data/aip/allow", Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		p.client.Transport = roundTripper(func(r *http.Request) *http.Response {
			question, _ := io.ReadAll(r.Body)
			status := 200
			if strings.Contains(string(question), aicV1) {
				open.Add(1)
				<-r.Context().Done()
				open.Add(-1)
				status = 503
			}
			return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(`{"result":true}`))}
		})
		var all sync.WaitGroup
		for _, who := range []*identity.Peer{start().Peer, new(identity.Peer)} {
			for i := range 3 * maxOfLeader {
				all.Go(func() {
					c := start()
					if c.Peer = who; !who.Verified() {
						c.Leader = fmt.Sprint(aicV1, i) // as the caller says
					}
					if got := said(p.Decide(t.Context(), c)); !strings.HasPrefix(got, "down: ") {
						t.Errorf("%s", got)
					}
				})
			}
		}
		synctest.Wait()
		if n := open.Load(); n != 2*maxOfLeader {
			t.Errorf("%d questions are asked at once, want %d", n, 2*maxOfLeader)
		}
		c := start()
		c.Leader = "aid:alice.aid.pub"
		c.Peer = &identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: "alice.aid.pub"}
		before := time.Now()
		if got, took := said(p.Decide(t.Context(), c)), time.Since(before); got != "allow" || took > 0 {
			t.Errorf("another Leader: %s after %v", got, took)
		}
		all.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d questions are still asked", n)
		}
		if got := said(p.Decide(t.Context(), c)); got != "allow" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func TestFreshness(t *testing.T) {
	for _, tc := range []struct {
		control, age string
		want         time.Duration
	}{
		{"", "", 0},
		{"max-age=10", "", 10 * time.Second},
		{`Max-Age="10" , private`, "", 10 * time.Second},
		{"max-age=10", "4", 6 * time.Second},
		{"max-age=10", "40", 0},
		{"max-age=10, max-age=3", "", 3 * time.Second},
		{"max-age=0", "", 0},
		{"max-age=-1", "", 0},
		{"max-age", "", 0},
		{"max-age=99999999999999999999999", "", maxFreshness},
		{"no-cache, max-age=10", "", 0},
		{"max-age=10, no-store", "", 0},
		{"s-maxage=10", "", 0},
	} {
		h := http.Header{"Cache-Control": {tc.control}}
		if tc.age != "" {
			h.Set("Age", tc.age)
		}
		if got := freshness(h); got != tc.want {
			t.Errorf("%s, Age %s: %v, want %v", tc.control, tc.age, got, tc.want)
		}
	}
}

// TestURL: the decision point stands at an address allowed by the policy of egress, now and at each question.
func TestURL(t *testing.T) {
	for _, u := range []string{
		"", "opa", "ftp://opa.example.com/", "https://user:secret@opa.example.com/", "https://opa.example.com/#x",
		"http://10.0.0.1:8181/v1/data", "http://8.8.8.8/v1/data",
	} {
		_, err := New(Config{URL: u, Dialer: loopback})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", u, err)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	t.Cleanup(s.Close)
	p, err := New(Config{URL: "https://opa.example.com/"}) // loopback is not allowed
	if err != nil {
		t.Fatal(err)
	}
	p.url = s.URL
	if got := said(p.Decide(t.Context(), start())); !strings.HasPrefix(got, "down: egress: connection refused") {
		t.Errorf("%s", got)
	}
}

func FuzzRead(f *testing.F) {
	for _, body := range []string{
		`{"result":true}`, `{"result":{"allow":true,"obligations":[]}}`, `{}`, `{"result":{"allow":1}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := read(body)
		if err != nil && a.allowed {
			t.Fatalf("%q is an error and allows", body)
		}
		if a.allowed && !strings.Contains(string(body), "true") && !strings.Contains(string(body), `\u`) {
			t.Fatalf("%q allows", body)
		}
		if len(a.reason) > maxReason || strings.ContainsAny(a.reason, "\n\x00\x1b") {
			t.Fatalf("the reason is %q", a.reason)
		}
	})
}
