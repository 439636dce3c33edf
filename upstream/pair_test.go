// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// outOfStep is an agent of A2A v0.1, repeating its last answer, once, on a connection when it owes another one. It
// remembers its tasks.
type outOfStep struct {
	mu    sync.Mutex
	last  string            // answer to a turn
	texts map[string]string // of the tasks
	turns int               // sent to it
	ids   map[string]int    // the number of requests of an id
	wrong bool              // the answer to the next turn is the last one
}

func (a *outOfStep) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req := gjson.ParseBytes(body)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids[req.Get("id").Str]++
	id := req.Get("params.id").Str
	method := req.Get("method").Str
	if strings.HasPrefix(method, "tasks/send") {
		a.turns++
		a.texts[id] = req.Get("params.message.parts.0.text").Str
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":{"state":"completed"},`+
		`"artifacts":[{"parts":[{"type":"text","text":%q}]}]}}`, req.Get("id").Raw, id, a.texts[id])
	if last := a.last; a.wrong {
		a.wrong, a.last, answer = false, answer, last
	} else {
		a.last = answer
	}
	if method == "tasks/sendSubscribe" {
		w.Header().Set("Content-Type", "text/event-stream")
		answer = "data: " + answer + "\n\n"
	}
	io.WriteString(w, answer)
}

// TestAnswersToOthers: the answer to one turn is never taken for another turn's, though an agent sends it so. The
// connection is closed, and the agent is asked for the task. No request has the id of another one.
//
// Promise: an agent, or a proxy before it, mixes up its answers, so that a Leader is given the result of another one
func TestAnswersToOthers(t *testing.T) {
	for _, stream := range []bool{false, true} {
		at := &outOfStep{texts: make(map[string]string), ids: make(map[string]int)}
		withAgent(t, at, func(s *settings) { s.RetryFor = 1 }, func(t *testing.T, a *upstream.Agent, m *agentUnderTest) {
			a.NumberEach()
			of := func(name string) *agent.Turn {
				x := turn("of " + name)
				x.Ref.Task = name
				return x
			}
			want := func(name string) {
				t.Helper()
				got := show(carryOut(t.Context(), a, of(name), stream))
				if diff := cmp.Diff([]string{"completed artifact-0=of " + name}, got); diff != "" {
					t.Errorf("stream %v: (-want +got):\n%s", stream, diff)
				}
			}
			want("ann")
			want("cat")
			if n := m.Dials(); n != 1 {
				t.Errorf("stream %v: %d connections for answers that are right", stream, n)
			}
			at.wrong = true
			want("bob")
			if n := m.Dials(); n != 2 {
				t.Errorf("stream %v: %d connections after an answer that is wrong", stream, n)
			}
			at.wrong = true
			if rep, err := a.Cancel(t.Context(), of("eve")); upstream.ReasonOf(err) != upstream.OtherAnswer {
				t.Errorf("a cancel is answered with %+v, %v", rep, err)
			} else if task.KindOf(err) != task.InvalidAgentResponse {
				t.Error(err)
			}
		})
		if at.turns != 3 {
			t.Errorf("stream %v: the agent was sent %d turns", stream, at.turns)
		}
		for id, n := range at.ids {
			if n > 1 || id == "" {
				t.Errorf("%d requests have the id %q", n, id)
			}
		}
	}
}

// TestIDsOfItsOwn: an agent careless about ids answers its one request all the same.
func TestIDsOfItsOwn(t *testing.T) {
	for name, answer := range map[string]string{
		"the id is a constant": `{"jsonrpc":"2.0","id":7,"result":{"id":"t","status":{"state":"completed"}}}`,
		"the id is missing":    `{"jsonrpc":"2.0","result":{"id":"t","status":{"state":"completed"}}}`,
	} {
		for _, stream := range []bool{false, true} {
			steps := script{"send": says(answer), "sendSubscribe": streams(true, answer), "get": says(answer)}
			withAgent(t, steps.handler(), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				got := show(carryOut(t.Context(), a, turn("x"), stream))
				if diff := cmp.Diff([]string{"completed"}, got); diff != "" {
					t.Errorf("%s, stream %v: (-want +got):\n%s", name, stream, diff)
				}
			})
		}
	}
}

// TestWrongIDs: a turn fails soon, with a sentence for the reason, if its agent never answers with the ids asked.
func TestWrongIDs(t *testing.T) {
	const sentence = "invalid-agent-response: the agent's answers are not those to its requests; it must answer each " +
		"with the id that this has, and about the task that this names"
	for name, answer := range map[string]string{
		"the id is another request's": `{"jsonrpc":"2.0","id":"2","result":{"id":"t","status":{"state":"completed"}}}`,
		"the task is another one":     `{"jsonrpc":"2.0","id":"2","result":{"id":"u","status":{"state":"completed"}}}`,
	} {
		for _, stream := range []bool{false, true} {
			steps := script{"send": says(answer), "sendSubscribe": streams(true, answer), "get": says(answer)}
			withAgent(t, steps.handler(), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				begun := time.Now()
				got := show(carryOut(t.Context(), a, turn("x"), stream))
				if diff := cmp.Diff([]string{sentence}, got); diff != "" {
					t.Errorf("%s, stream %v: (-want +got):\n%s", name, stream, diff)
				}
				if took := time.Since(begun); took > 10*time.Second { // of the bubble
					t.Errorf("%s, stream %v: it took %v", name, stream, took)
				}
			})
		}
	}
}
