// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestTrace proves that the caller's trace continues at the agent, with and without spans of the gateway.
func TestTrace(t *testing.T) {
	t.Parallel()
	const traceID, spanID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	agent := site.NewFakeAgent(t, nil)
	spans := newCollector(t)
	s := site.New(t)
	s.Env = spans.env()
	s.Start(site.Config{Store: "store memory\ntraces {\nlink https://traces.example.com/{trace_id}\n}", Handle: `
	log
	handle_path /plain* {
		aip_gateway a2a/legacy ` + agent.URL + `
	}
	handle_path /traced* {
		tracing {
			span call
		}
		aip_gateway a2a/legacy ` + agent.URL + `
	}
	metrics /metrics`})
	for _, tc := range []struct {
		mount   string
		newSpan bool
	}{{"/plain", false}, {"/traced", true}} {
		leader := site.LeaderOf(t, s.URL()+tc.mount)
		_, body := leader.Post(
			"/rpc",
			[]byte(site.StartBody(leader.Sender, "task-"+tc.mount)),
			"traceparent",
			"00-"+traceID+"-"+spanID+"-01",
		)
		if !bytes.Contains(body, []byte(`"awaiting-completion"`)) {
			t.Fatalf("%s", body)
		}
		asked := agent.Requests("tasks/send")
		got := asked[len(asked)-1].Header.Get("traceparent")
		m := regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-01$`).FindStringSubmatch(got)
		if m == nil || m[1] != traceID || (m[2] != spanID) != tc.newSpan {
			t.Errorf(
				"%s: the agent was given the traceparent %q, want that of %s, with a new span: %t",
				tc.mount,
				got,
				traceID,
				tc.newSpan,
			)
		}

		// Without a trace of the caller's, there is none where nothing traces.
		_, _ = leader.Post("/rpc", []byte(site.StartBody(leader.Sender, "untraced-"+tc.mount)))
		asked = agent.Requests("tasks/send")
		if got := asked[len(asked)-1].Header.Get("traceparent"); (got != "") != tc.newSpan || strings.Contains(got, traceID) {
			t.Errorf("%s: without a caller's trace the agent was given %q", tc.mount, got)
		}
	}
	// The task keeps the trace of its start, and lines of the log and of the access log have it.
	if shown := s.TasksCommand(0, "show", "task-/plain"); !strings.Contains(shown, traceID) ||
		!strings.Contains(shown, "https://traces.example.com/"+traceID) {
		t.Errorf("the task is shown without its trace:\n%s", shown)
	}
	if shown := s.TasksCommand(0, "show", "untraced-/plain"); strings.Contains(shown, "traces.example.com") {
		t.Errorf("a task without a trace is shown with one:\n%s", shown)
	}
	refused := site.LeaderOf(t, s.URL()+"/plain")
	_, _ = refused.Post("/rpc", []byte(site.StartBody("another", "refused")), "traceparent",
		"00-"+traceID+"-"+spanID+"-01")
	has(t, s.Logged(t, "a caller was refused")[0], map[string]any{"trace_id": traceID})
	calls := make(map[any]any)
	site.Eventually(t, "the access log has the calls", func() bool { // a moment after they are answered
		for _, line := range s.Logged(t, "handled request") {
			if call, ok := line["aip"].(map[string]any); ok && call["command"] == "start" {
				calls[call["task"]] = call["trace_id"]
			}
		}
		_, last := calls["untraced-/traced"]
		return len(calls) >= 4 && last
	})
	if calls["task-/plain"] != traceID || calls["task-/traced"] != traceID || calls["untraced-/plain"] != nil {
		t.Errorf("the traces in the access log are %v", calls)
	}
	id, err := hex.DecodeString(traceID)
	if err != nil {
		t.Fatal(err)
	}
	spans.want(string(id), "aip.call", "aip.run", "tasks/send")
	if spans.has("hello") {
		t.Error("a span holds the payload")
	}
	// The exemplar of a bucket is the last call or turn in it that was traced, so no other call comes after this one.
	leader := site.LeaderOf(t, s.URL()+"/traced")
	_, _ = leader.Post("/rpc", []byte(site.StartBody(leader.Sender, "last")), "traceparent",
		"00-"+traceID+"-"+spanID+"-01")
	for _, name := range []string{"aip_call_duration_seconds", "aip_task_settled_seconds"} {
		exemplar := regexp.MustCompile(name + `_bucket\{.*# \{.*trace_id="` + traceID + `"`)
		site.Eventually(t, name+" has an exemplar with the trace", func() bool {
			_, metrics := site.LeaderOf(t, s.URL()).Exchange("GET", "/metrics", nil, "Accept", "application/openmetrics-text")
			return exemplar.Match(metrics)
		})
	}
}

// TestTraceWithoutCaller: a turn that is resumed after a restart, and the delivery of a notification, are traced
// although no traced call causes them. A call is not, where Caddy does not trace it.
func TestTraceWithoutCaller(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if h.Method == "tasks/send" {
			<-r.Context().Done() // until the gateway is killed
			return
		}
		site.WriteTask(w, h, "completed", "done")
	})
	spans, receiver := newCollector(t), site.NewSink(t)
	s := site.New(t)
	s.Env = spans.env()
	c := site.Config{Notify: site.AllowHere, Handle: "aip_gateway a2a/legacy " + agent.URL}
	s.Start(c)
	leader := site.LeaderOf(t, s.URL())
	leader.SetHook(site.Hook{URL: receiver.Origin() + "/hook", Token: "t", TaskID: "one"})
	call := site.StartCall("one", "hello")
	call.Terms.Response = time.Millisecond
	leader.Send(call)
	site.Eventually(t, "the agent has the message", func() bool { return len(agent.Requests("tasks/send")) > 0 })
	spans.want("aip.webhook")
	s.Kill()
	if spans.has("aip.run") || spans.has("aip.call") {
		t.Error("a call is traced although Caddy does not trace it")
	}
	s.Start(c)
	if got := leader.Rests("one"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("%+v", site.AnswerOf(got))
	}
	all := agent.Requests("")
	last := all[len(all)-1]
	spans.want("aip.run", last.Method)
	if last.Header.Get("traceparent") == "" {
		t.Errorf("the agent was sent %s without a traceparent", last.Method)
	}
}

// collector is a receiver of OTLP. It keeps the spans as protobuf, in which ids and names are in plain text.
type collector struct {
	t   *testing.T
	url string

	mu    sync.Mutex
	spans bytes.Buffer
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		io.Copy(&c.spans, r.Body)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// env returns the environment variables for a gateway that exports its spans to the collector.
func (c *collector) env() []string {
	return []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_BSP_SCHEDULE_DELAY=50",
	}
}

func (c *collector) has(s string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.spans.Bytes(), []byte(s))
}

// want waits until all of these are in spans.
func (c *collector) want(all ...string) {
	c.t.Helper()
	for _, s := range all {
		site.Eventually(c.t, fmt.Sprintf("the collector has a span with %q", s), func() bool { return c.has(s) })
	}
}

// TestLogs proves that what callers and agents say to each other stays out of the log, whatever goes wrong.
func TestLogs(t *testing.T) {
	t.Parallel()
	const payload, product, token = "payload-5d1f", "product-77ae", "token-c3b9"
	var bad sync.Map // ids of tasks, and how the agent answers of them
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		for _, how := range []string{"fail", "break", "garble"} {
			if strings.Contains(string(h.Body), "please "+how) {
				bad.Store(h.Params.ID, how)
			}
		}
		switch how, _ := bad.Load(h.Params.ID); how {
		case "fail":
			site.WriteTask(w, h, "failed", product)
		case "break":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"status":["completed"],"artifacts":%q}}`, h.ID, product)
		case "garble":
			fmt.Fprint(w, product)
		default:
			site.WriteTask(w, h, "completed", product)
		}
	})
	s := site.Serve(t, site.Config{Options: "debug", Handle: `aip_gateway {
		agent a2a/legacy ` + agent.URL + ` {
			header_up Authorization "Bearer ` + token + `"
			timeout 1s
		}
	}`})
	leader := site.LeaderOf(t, s.URL())
	leader.Start("good", payload)
	leader.GoOn("good", payload)
	leader.Complete("good")
	for _, what := range []string{"fail", "break", "garble"} {
		leader.Start(what, payload+" please "+what)
		if got := leader.Rests(what); got.Status.State != task.Failed {
			t.Errorf("%s: %+v, want failed", what, site.AnswerOf(got))
		}
	}
	leader.Refused(site.CommandCall(task.Get, "unknown", payload))
	for _, body := range []string{payload, `{"jsonrpc":"2.0","id":"` + payload + `","method":"` + payload + `"}`,
		strings.Replace(site.StartBody(leader.Sender, "x"), `"hello"`, `"`+payload+"\xff", 1),
		strings.Replace(site.StartBody("another", "x"), `hello`, payload, 1)} {
		leader.Post("/rpc", []byte(body))
	}
	s.Stop(t) // then all of the log is here
	log := s.Out.String()
	for _, word := range []string{payload, product, token} {
		for line := range strings.Lines(log) {
			if strings.Contains(line, word) {
				t.Errorf("the log has %s: %s", word, line)
			}
		}
	}
	if !strings.Contains(log, `"level":"debug"`) {
		t.Error("nothing was logged at the level debug, so this test proves little")
	}
	if !strings.Contains(log, "a caller was refused") {
		t.Error("the log does not show a caller with a wrong senderId")
	}
}
