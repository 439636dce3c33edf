// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// liar is an agent whose card, and whose answers to questions, say A2A 1.0, while it knows the methods of 0.3 only.
type liar struct {
	url string
	mu  sync.Mutex
	did []string // the methods that were called
}

func newLiar(t testing.TB) *liar {
	t.Helper()
	l := new(liar)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprintf(
				w,
				`{"name":"liar","supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":"1.0"}],`+
					`"capabilities":{},"skills":[]}`,
				l.url,
			)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		v := gjson.ParseBytes(body)
		method := v.Get("method").Str
		l.mu.Lock()
		l.did = append(l.did, method)
		l.mu.Unlock()
		switch method {
		case "GetTask":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Task not found"}}`, v.Get("id").Raw)
		case "message/send":
			fmt.Fprintf(
				w,
				`{"jsonrpc":"2.0","id":%s,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"},`+
					`"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"the truth"}]}]}}`,
				v.Get("id").Raw,
			)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, v.Get("id").Raw)
		}
	}))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// called returns the methods that were called since the last time.
func (l *liar) called() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	did := l.did
	l.did = nil
	return did
}

// wrong are agents that the gateway is configured to call in a dialect that they do not speak.
// says is a part of the reason that a Leader gets.
var wrong = []struct{ name, dialect, agent, path, says string }{
	{"new to old", "a2a/1.0", "legacy-trpc", "/", "the agent does not speak a2a/1.0; the operator must check its dialect"},
	{
		"middle to old",
		"a2a/0.3",
		"legacy-trpc",
		"/",
		"the agent does not speak a2a/0.3; the operator must check its dialect",
	},
	{
		"old to middle",
		"a2a/legacy",
		"a2a-go-03",
		"/invoke",
		"the agent does not speak a2a/legacy; the operator must check its dialect",
	},
	{
		"old to new",
		"a2a/legacy",
		"a2a-go-10",
		"/invoke",
		"the agent does not speak a2a/legacy; the operator must check its dialect",
	},
	{"rest to rpc", "a2a/1.0-rest", "js-03", "/invoke", "no agent answers at the agent's URL (HTTP 404"},
	{"aip to middle", "aip", "a2a-go-03", "/invoke", "the agent does not speak aip; the operator must check its dialect"},
	{"aip to new", "aip", "js-10", "/invoke", "A2A protocol version"}, // the code that says so has another meaning in AIP
}

// wrongPath is where the gateway is mounted before such an agent.
func wrongPath(name string) string { return "wrong/" + strings.ReplaceAll(name, " ", "-") }

// findJobs are about how the gateway finds out what its agents speak.
func findJobs(w *world) (jobs []job) {
	for _, b := range w.backs {
		if b.dialect == "a2a" {
			jobs = append(jobs, job{"finding " + b.name, func(t *testing.T) { byFinding(t, w, b) }})
		}
	}
	for _, it := range wrong {
		jobs = append(jobs, job{"wrong dialect, " + it.name, func(t *testing.T) {
			l := newLeaderOf(t, w.url+"/"+wrongPath(it.name))
			got := viewOfTask(l.Caller.Start("t", "echo hi"))
			if got.State != "failed" || !strings.Contains(got.Says, it.says) {
				t.Errorf("the task is %+v", got)
			}
		}})
	}
	return append(jobs, job{"a card that lies", func(t *testing.T) { byLying(t, w) }})
}

// byFinding looks for the log line that says what was found, and why.
func byFinding(t *testing.T, w *world, b *back) {
	newLeaderOf(t, w.mount(b)).Caller.Start("t", "echo hi")
	line := `"msg":"the agent was found","partner":"[^"]*","agent":"[^"]*","dialect":"` + regexp.QuoteMeta(b.found) +
		`","endpoint":"` + regexp.QuoteMeta(b.recorder.url) + `[^"]*","why":"([^"]+)"`
	t.Logf("it was found by this: %s", w.site.WaitFor(t, line)[1])
	// Two handlers front the agent, under a path and without one, and each finds it out for itself, once.
	if n := len(regexp.MustCompile(line).FindAllString(w.site.Out.String(), -1)); n > 2 {
		t.Errorf("it was found %d times", n)
	}
}

// byLying falls back to another dialect once, and stays with it.
func byLying(t *testing.T, w *world) {
	l := newLeaderOf(t, w.url+"/liar")
	l.HTTP.CloseIdleConnections()
	if got := viewOfTask(l.Caller.Start("1", "echo hi")); got.State != "awaiting-completion" || got.Holds != "the truth" {
		t.Errorf("the first task is %+v", got)
	}
	if first := w.liar.called(); len(first) == 0 || first[len(first)-1] != "message/send" {
		t.Errorf("the agent was asked %q", first)
	}
	if got := viewOfTask(l.Caller.Start("2", "echo hi")); got.State != "awaiting-completion" || got.Holds != "the truth" {
		t.Errorf("the second task is %+v", got)
	}
	if diff := cmp.Diff([]string{"message/send"}, w.liar.called()); diff != "" {
		t.Errorf("the agent was asked for the second one (-want +got):\n%s", diff)
	}
	if n := strings.Count(w.site.Out.String(),
		"the agent does not know the methods of its dialect; trying another one"); n != 1 {
		t.Errorf("the gateway says %d times that it tries another dialect", n)
	}
}
