// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// runtime is an agent of the Agent API: it answers each request by the next of its answers, the last one again and
// again, and keeps the requests.
type runtime struct {
	answers []http.HandlerFunc
	stop    http.HandlerFunc

	mu    sync.Mutex
	n     int
	asked []string // path, Accept and body
}

func (a *runtime) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.asked = append(a.asked, fmt.Sprintf("%s %s %s", r.URL.Path, r.Header.Get("Accept"), body))
	answer := a.stop
	if r.URL.Path != "/stop" {
		answer = a.answers[min(a.n, len(a.answers)-1)]
		a.n++
	}
	a.mu.Unlock()
	answer(w, r)
}

// events answers by a stream of these events.
func events(list ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { streams(false, list...)(w, r, 0) }
}

// status answers by a status of HTTP and a body.
func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

const (
	busyLine = `{"error": "Task s:s is already in RUNNING state."}`
	created  = `{"object":"response","id":"r","status":"created"}`
	begins   = `{"object":"message","id":"m","status":"in_progress","type":"message","role":"assistant"}`
	saysHi   = `{"object":"content","type":"text","index":0,"delta":true,"msg_id":"m","status":"in_progress","text":"hi"}`
	finished = `{"object":"response","id":"r","status":"completed","output":null}`
	saysAll  = `{"object":"message","id":"m","status":"completed","type":"message","role":"assistant",` +
		`"content":[{"type":"text","text":"hi"}]}`
)

// notAgain is the reason not to send a run again: it may have begun.
const notAgain = "; the message is not sent again, since the agent may have acted on it"

// inRuntime runs f with an agent of the Agent API.
func inRuntime(t *testing.T, a *runtime, o agentapi.Options, f func(t *testing.T, h *upstream.Agent)) {
	t.Helper()
	change := func(s *settings) {
		s.Codec, s.URL = agentapi.Client(o), "http://agent/process"
		if o.CancelPath != "" {
			s.Paths = map[translate.Operation]string{translate.Cancel: o.CancelPath}
		}
	}
	withAgent(t, a, change, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) { f(t, h) })
}

// TestRuns: the ends of runs of the Agent API. A run is not sent again if it may have begun.
func TestRuns(t *testing.T) {
	const gone = "unsupported-operation: the connection to the agent is gone, and agentapi cannot ask how a task stands" +
		notAgain
	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, c := range []struct {
		name    string
		answers []http.HandlerFunc
		want    []string
		tries   int
		took    time.Duration
	}{
		{"a run", []http.HandlerFunc{events(created, begins, saysHi, finished)},
			[]string{"created", "m+=hi", "completedm+="}, 1, 0},
		{"an answer that is no stream", []http.HandlerFunc{status(200, finished)}, []string{"completed"}, 1, 0},
		{"a busy session", []http.HandlerFunc{events(busyLine), status(200, busyLine), events(created, finished)},
			[]string{"created", "completed"}, 3, 300 * time.Millisecond},
		{"a session that stays busy", []http.HandlerFunc{events(busyLine)},
			[]string{"agent-timeout: the agent has worked on an earlier message of the session for 5m0s"},
			154, 299*time.Second + 100*time.Millisecond},
		{"a stream that ends too early", []http.HandlerFunc{events(created, begins, saysHi)},
			[]string{"created", "m+=hi", gone}, 1, 0},
		{"a stream that ends behind the answer", []http.HandlerFunc{events(created, saysAll)},
			[]string{"created", "m+=hi", "complete"}, 1, 0},
		{"a stream that says so", []http.HandlerFunc{events(created, saysAll, "[DONE]")},
			[]string{"created", "m+=hi", "complete"}, 1, 0},
		{"a stream that breaks behind the answer", []http.HandlerFunc{
			func(w http.ResponseWriter, r *http.Request) {
				events(created, saysAll)(w, r)
				breaks(w, r)
			}}, []string{"created", "m+=hi", gone}, 1, 0},
		{"a stream without an event", []http.HandlerFunc{events()}, []string{gone}, 1, 0},
		{"a connection that breaks", []http.HandlerFunc{breaks},
			[]string{"invalid-agent-response: the connection to the agent broke before it answered"}, 1, 0},
		{"a server that fails", []http.HandlerFunc{status(500, "Internal Server Error")},
			[]string{"invalid-agent-response: the agent's answer is not one JSON value (HTTP 500, text/plain)"}, 1, 0},
		{"a proxy that fails", []http.HandlerFunc{status(502, "")},
			[]string{"invalid-agent-response: a proxy in front of the agent does not reach it (HTTP 502, no media type)"},
			1, 0},
		{"a request that is refused", []http.HandlerFunc{status(422, `{"detail":[{"type":"missing"}]}`)},
			[]string{"invalid-agent-response: the agent's server reports an error, and not a response " +
				"(HTTP 422, text/plain)"}, 1, 0},
		{"a server that takes no requests", []http.HandlerFunc{status(503, ""), events(created, finished)},
			[]string{"agent-unavailable: the agent takes no requests now (HTTP 503)"}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, stream := range []bool{false, true} {
				a := &runtime{answers: c.answers}
				inRuntime(t, a, agentapi.Options{}, func(t *testing.T, h *upstream.Agent) {
					begun := time.Now()
					if d := cmp.Diff(c.want, show(carryOut(t.Context(), h, turn("hi"), stream))); d != "" {
						t.Errorf("(-want +got):\n%s", d)
					}
					if took := time.Since(begun); took != c.took {
						t.Errorf("it took %v, want %v", took, c.took)
					}
				})
				const want = `/process text/event-stream {"input":[{"role":"user","type":"message",` +
					`"content":[{"type":"text","text":"hi"}]}],"stream":true,"user_id":"s","session_id":"s"}`
				for _, got := range a.asked {
					if got != want {
						t.Errorf("the agent is asked %s", got)
					}
				}
				if len(a.asked) != c.tries {
					t.Errorf("the agent is asked %d times, want %d", len(a.asked), c.tries)
				}
			}
		})
	}
}

// TestOtherSession: a response of a session named by the gateway is no answer in another one, whatever form the
// names have. The agent's own names say nothing.
func TestOtherSession(t *testing.T) {
	const first, second = "0b0a6d5e-2b6c-4c7d-8e9f-000000000001", "f2c1b7aa-91d3-4e55-b1a0-000000000002"
	in := func(session string) http.HandlerFunc {
		return events(created, begins, saysHi, `{"object":"response","id":"r","status":"completed","session_id":"`+session+
			`","output":null}`)
	}
	for session, want := range map[string]string{
		first: "the agent has answered another request than this one", second: "completed",
		"0b0a6d5e-2b6c-4c7d-8e9f-000000000003": "completed",
	} {
		a := &runtime{answers: []http.HandlerFunc{in(first), in(session)}}
		inRuntime(t, a, agentapi.Options{}, func(t *testing.T, h *upstream.Agent) {
			for _, of := range []string{first, second} {
				m := turn("hi")
				m.Ref.Session = of
				got := show(carryOut(t.Context(), h, m, true))
				end := "completed"
				if of == second {
					end = want
				}
				if !strings.Contains(got[len(got)-1], end) {
					t.Errorf("the answer of session %s in that of %s is %q", session, of, got)
				}
			}
		})
	}
}

// TestResumedRun: the run of another process is not sent again. It may have begun.
func TestResumedRun(t *testing.T) {
	a := &runtime{}
	inRuntime(t, a, agentapi.Options{}, func(t *testing.T, h *upstream.Agent) {
		got := show(h.Resume(t.Context(), turn("hi")))
		if len(got) != 1 || !strings.HasPrefix(got[0], "unsupported-operation: the connection to the agent is gone") {
			t.Errorf("it is %q", got)
		}
	})
	if len(a.asked) > 0 {
		t.Errorf("the agent is asked %q", a.asked)
	}
}

// TestCancelOfASession: a run is stopped by its path, whatever the answer, and only while it is the task's.
func TestCancelOfASession(t *testing.T) {
	stopped := []string{`/stop application/json {"user_id":"s","session_id":"s"}`}
	working := func(c *agent.Turn) { c.From = task.Working }
	for _, c := range []struct {
		name   string
		path   string
		stop   http.HandlerFunc
		change func(*agent.Turn)
		want   string
		asked  []string
	}{
		{"a word", "/stop", status(200, `{"status":"success"}`), working, "canceled", stopped},
		{"a text", "/stop", status(200, "ok"), working, "canceled", stopped},
		{"nothing", "/stop", status(204, ""), working, "canceled", stopped},
		{"a page that is not there", "/stop", status(404, "Not Found"), working,
			"invalid-agent-response: no agent answers at the agent's URL (HTTP 404, text/plain)", stopped},
		{"a failure", "/stop", status(500, "Internal Server Error"), working,
			"invalid-agent-response: the agent's answer is not one JSON value (HTTP 500, text/plain)", stopped},
		{"a task that awaits input", "/stop", nil, func(c *agent.Turn) { c.From = task.AwaitingInput }, "canceled", nil},
		{"a message that waits to be sent", "/stop", nil, func(c *agent.Turn) {
			c.From, c.HasWork = task.Working, func(context.Context) bool { return false }
		}, "canceled", nil},
		{"a message that is not answered", "/stop", status(204, ""), func(c *agent.Turn) {
			c.From, c.HasWork = task.Working, func(ctx context.Context) bool { <-ctx.Done(); return true }
		}, "canceled", stopped},
		{"a task whose run has ended meanwhile", "/stop", nil, func(c *agent.Turn) {
			c.From = task.Working
			works := true
			c.HasWork = func(context.Context) bool { return works }
			c.MayAct = func(context.Context) error {
				works = false // the session has the run of another task now
				return nil
			}
		}, "canceled", nil},
		{"no path, and a message that is not answered", "", nil, func(c *agent.Turn) {
			c.From, c.HasWork = task.Working, func(ctx context.Context) bool { <-ctx.Done(); return true }
		}, "canceled: canceled here; agentapi cannot cancel, so the connection to the agent was closed, and the agent " +
			"may continue its work", nil},
		{"no path", "", nil, working, "canceled: canceled here; agentapi cannot cancel, so the connection to the " +
			"agent was closed, and the agent may continue its work", nil},
		{"no path, and nothing to stop", "", nil, func(c *agent.Turn) { c.From = task.AwaitingInput }, "canceled", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &runtime{stop: c.stop}
			inRuntime(t, a, agentapi.Options{CancelPath: c.path}, func(t *testing.T, h *upstream.Agent) {
				cancel := &agent.Turn{Ref: agent.Ref{Task: "t", Session: "s"}}
				c.change(cancel)
				rep, err := h.Cancel(t.Context(), cancel)
				got := string(rep.State)
				if err != nil {
					got = one(rep, err)
				} else if len(rep.Items) > 0 {
					got += ": " + rep.Items[0].Text
				}
				if got != c.want {
					t.Errorf("it is %q, want %q", got, c.want)
				}
			})
			if d := cmp.Diff(c.asked, a.asked); d != "" {
				t.Errorf("the agent is asked (-want +got):\n%s", d)
			}
		})
	}
}
