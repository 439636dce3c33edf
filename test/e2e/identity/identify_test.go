// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// limiter is a rate limiter of somebody else, which forward_auth asks: each Leader may start two tasks.
type limiter struct {
	mu     sync.Mutex
	starts map[string]int
	asked  []string
	bodies int64 // bytes
}

func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.Copy(io.Discard, r.Body)
	leader, command := r.Header.Get("X-Leader"), r.Header.Get("X-Command")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bodies += body
	l.asked = append(l.asked,
		strings.Join([]string{leader, r.Header.Get("X-Proof"), r.Header.Get("X-Method"), command}, " "))
	if command != "start" {
		return
	}
	if l.starts[leader]++; l.starts[leader] > 2 {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// TestIdentify: handlers of Caddy's decide by who calls and for what, in all dialects and before the gateway: an
// expression, a matcher, and a rate limiter behind forward_auth that counts for each Leader. The gateway gets the whole
// body, and the caller cannot name itself.
func TestIdentify(t *testing.T) {
	t.Parallel()
	limit := &limiter{starts: make(map[string]int)}
	auth := httptest.NewServer(limit)
	t.Cleanup(auth.Close)
	agent := site.NewFakeAgent(t, nil)
	p := site.Certificates(t)
	one, two := string(p.Leader.AIC), string(p.LeaderV1.AIC)
	s := site.Serve(t, site.Config{Mode: "verify_if_given", Handle: `aip_identify {
		callers aip a2a
	}
	@stranger expression ` + "`{aip.leader} == '' && {aip.command} != 'get'`" + `
	error @stranger 403
	@cancels aip_method cancel tasks/cancel
	error @cancels 405
	forward_auth ` + strings.TrimPrefix(auth.URL, "http://") + ` {
		uri /check
		header_up X-Leader {aip.leader}
		header_up X-Proof {aip.proof}
		header_up X-Method {aip.method}
		header_up X-Command {aip.command}
	}
	header X-Seen "{aip.leader} {aip.proof} {aip.method} {aip.command}"
	aip_gateway a2a/legacy ` + agent.URL + ` {
		callers aip a2a
		identity optional
	}`})
	mine := site.CallerWith(t, s.URL(), one, devpkitest.KeyPair(t, p.Leader))
	others := site.CallerWith(t, s.URL(), two, devpkitest.KeyPair(t, p.LeaderV1))
	stranger := site.CallerWith(t, s.URL(), one)
	long := strings.Repeat("x", 200<<10)
	start := func(leader, id, text string) string {
		return string(site.AIPBody("rpc", leader, "start", id, text, ""))
	}
	for _, tc := range []struct {
		name   string
		by     *site.Caller
		path   string
		body   string
		status int
		seen   string
		answer string
	}{
		{"a start", mine, "/rpc", start(one, "t1", long), 200, one + " certificate rpc start", `"awaiting-completion"`},
		{"A2A", mine, "/", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message",` +
			`"messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}]}}}`, 200,
			one + " certificate message/send start", `"completed"`},
		{"the third start", mine, "/rpc", start(one, "t3", "hello"), 429, "", ""},
		{"a get after it", mine, "/rpc", string(site.AIPBody("rpc", one, "get", "t1", "", "")), 200,
			one + " certificate rpc get",
			`"awaiting-completion"`},
		{"another Leader", others, "/rpc", start(two, "t1", "hello"), 200, two + " certificate rpc start",
			`"awaiting-completion"`},
		{"a cancel", mine, "/rpc", string(site.AIPBody("rpc", one, "cancel", "t1", "", "")), 405, "", ""},
		{"A2A, a cancel", mine, "/", `{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":{"id":"t1"}}`, 405, "", ""},
		{"a start of a stranger", stranger, "/rpc", start(one, "t9", "hello"), 403, "", ""},
		{"what nobody understands", stranger, "/rpc", `{`, 403, "", ""},
	} {
		res, answer := tc.by.Exchange(http.MethodPost, tc.path, []byte(tc.body), "X-Leader", "mallory", "X-Proof", "none")
		if res.StatusCode != tc.status || !strings.Contains(string(answer), tc.answer) {
			t.Errorf("%s: %s %.300s", tc.name, res.Status, answer)
		}
		if got := res.Header.Get("X-Seen"); tc.seen != "" && got != tc.seen {
			t.Errorf("%s: the placeholders are %q, want %q", tc.name, got, tc.seen)
		}
		if retry := res.Header.Get("Retry-After"); tc.status == 429 && retry != "60" {
			t.Errorf("%s: retry after %q", tc.name, retry)
		}
	}
	limit.mu.Lock()
	defer limit.mu.Unlock()
	want := []string{one + " certificate rpc start", one + " certificate message/send start",
		one + " certificate rpc start", one + " certificate rpc get", two + " certificate rpc start",
		one + " certificate rpc cancel", one + " certificate tasks/cancel cancel", "  rpc start", "  rpc unknown"}
	if d := cmp.Diff(want, limit.asked); d != "" || limit.bodies != 0 {
		t.Errorf("the limiter has %d bytes of bodies, and is asked (-want +got):\n%s", limit.bodies, d)
	}
	if n := len(agent.Requests("")); n != 3 {
		t.Errorf("the agent has %d requests", n)
	}
}
