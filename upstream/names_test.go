// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// names03 makes the agent one of A2A 0.3: it names its tasks itself.
func names03(c *settings) { c.Codec = a2a.V03() }

// namer03 is an agent naming its task after a while, and working until it is canceled.
type namer03 struct {
	streams bool
	after   time.Duration
	slow    time.Duration // the time it takes to not know a task

	mu       sync.Mutex
	asked    []string // method and id
	canceled chan struct{}
}

func (a *namer03) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v := gjson.ParseBytes(body)
	method := v.Get("method").Str
	a.mu.Lock()
	a.asked = append(a.asked, strings.TrimSpace(method+" "+v.Get("params.id").Str))
	a.mu.Unlock()
	const state = `{"jsonrpc":"2.0","id":"1","result":{"kind":"task","id":"its own","contextId":"c",` +
		`"status":{"state":%q}}}`
	switch {
	case method == "message/stream" && a.streams:
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		pause, done := time.After(a.after), r.Context().Done()
		select {
		case <-pause:
		case <-done:
			return
		}
		fmt.Fprintf(w, "data: "+state+"\n\n", "working")
		w.(http.Flusher).Flush()
		select {
		case <-a.canceled:
			fmt.Fprintf(w, "data: "+state+"\n\n", "canceled")
		case <-done:
		}
	case method == "message/send":
		select {
		case <-a.canceled:
			fmt.Fprintf(w, state, "canceled")
		case <-time.After(a.after):
			fmt.Fprintf(w, state, "completed")
		case <-r.Context().Done():
		}
	case method == "tasks/cancel" && v.Get("params.id").Str == "its own":
		close(a.canceled)
		fmt.Fprintf(w, state, "canceled")
	case method == "tasks/cancel":
		time.Sleep(a.slow)
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32001,"message":"Task not found"}}`)
	default:
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32004,"message":"This operation is not `+
			`supported"}}`)
	}
}

// TestCancelByTheAgentsName cancels under the only name known to the gateway, before the agent has named the task.
func TestCancelByTheAgentsName(t *testing.T) {
	for _, tc := range []struct {
		name  string
		agent *namer03
		asked []string
		want  string
	}{
		{"it is about to name the task", &namer03{streams: true, after: time.Second},
			[]string{"message/stream", "tasks/cancel its own"}, "canceled"},
		{"it has named the task", &namer03{streams: true}, []string{"message/stream", "tasks/cancel its own"},
			"canceled"},
		{"it does not name the task", &namer03{streams: true, after: time.Hour}, []string{"message/stream"},
			"agent-timeout: the agent has not named the task yet"},
		{"it has no streams", &namer03{after: time.Hour}, []string{"message/stream", "message/send"},
			"agent-timeout: the agent has not named the task yet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withAgent(t, tc.agent, names03, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				tc.agent.canceled = make(chan struct{})
				ctx, stop := context.WithCancel(t.Context())
				var said []string
				ran := make(chan struct{})
				go func() {
					defer close(ran)
					said = show(carryOut(ctx, h, turn("x"), false))
				}()
				synctest.Wait()
				rep, err := h.Cancel(t.Context(), turn("x"))
				got := rep.NativeState
				if err != nil {
					got = err.Error()
				}
				if got != tc.want {
					t.Errorf("cancel is answered with %q, want %q", got, tc.want)
				}
				if tc.want != "canceled" {
					stop() // as the Partner does, whatever the agent says
				}
				<-ran
				if stop(); tc.want == "canceled" {
					if said[len(said)-1] != "canceled" {
						t.Errorf("the turn says %q", said)
					}
				}
				tc.agent.mu.Lock()
				defer tc.agent.mu.Unlock()
				if diff := cmp.Diff(tc.asked, tc.agent.asked); diff != "" {
					t.Errorf("the agent is asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// lateFind is the Resolver of an agent. It finds it for its first caller later than for others, as if the caller's
// goroutine were scheduled late.
type lateFind struct {
	upstream.Resolver
	first, found atomic.Bool
}

func (l *lateFind) Endpoint(ctx context.Context) (*upstream.Endpoint, error) {
	if !l.first.Swap(true) {
		time.Sleep(100 * time.Millisecond)
	}
	l.found.Store(true)
	return l.Resolver.Endpoint(ctx)
}

func (l *lateFind) Known() *upstream.Endpoint {
	if !l.found.Load() {
		return nil
	}
	return l.Resolver.Known()
}

// TestCancelWhileTheAgentIsFound cancels the first task of an agent of a dialect yet to be found.
func TestCancelWhileTheAgentIsFound(t *testing.T) {
	for _, stream := range []bool{false, true} {
		namer := &namer03{streams: true}
		withAgent(t, namer, names03, func(t *testing.T, _ *upstream.Agent, at *agentUnderTest) {
			namer.canceled = make(chan struct{})
			h := upstream.New(upstream.Config{Resolver: &lateFind{Resolver: upstream.NewEndpoint(at.codec, at.transport)}})
			h.NumberAll("1")
			var said []string
			var ran sync.WaitGroup
			ran.Go(func() { said = show(carryOut(t.Context(), h, turn("x"), stream)) })
			synctest.Wait()
			if rep, err := h.Cancel(t.Context(), turn("x")); err != nil || rep.NativeState != "canceled" {
				t.Errorf("cancel is answered with %+v, %v", rep, err)
			}
			ran.Wait()
			if diff := cmp.Diff([]string{"working", "canceled"}, said); diff != "" {
				t.Errorf("the turn says (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCancelBeforeTheTurn: the agent is asked to cancel before the turn of the task is begun, and does not know it.
func TestCancelBeforeTheTurn(t *testing.T) {
	namer := &namer03{streams: true, slow: time.Second}
	withAgent(t, namer, names03, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		namer.canceled = make(chan struct{})
		var ran sync.WaitGroup
		ran.Go(func() {
			if rep, err := h.Cancel(t.Context(), turn("x")); err != nil || rep.NativeState != "canceled" {
				t.Errorf("cancel is answered with %+v, %v", rep, err)
			}
		})
		synctest.Wait()
		if diff := cmp.Diff([]string{"working", "canceled"}, show(carryOut(t.Context(), h, turn("x"), true))); diff != "" {
			t.Errorf("the turn says (-want +got):\n%s", diff)
		}
		ran.Wait()
		if _, err := h.Cancel(t.Context(), turn("x")); task.KindOf(err) != task.TaskNotFound {
			t.Errorf("after the turn, a cancel by the gateway's name is answered with %v", err)
		}
		if diff := cmp.Diff([]string{"tasks/cancel t", "message/stream", "tasks/cancel its own", "tasks/cancel t"},
			namer.asked); diff != "" {
			t.Errorf("the agent is asked (-want +got):\n%s", diff)
		}
	})
}

// TestStreamsAreTriedOnce: an agent without streams is not asked for one with every task.
func TestStreamsAreTriedOnce(t *testing.T) {
	a := &namer03{after: time.Second}
	withAgent(t, a, names03, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		a.canceled = make(chan struct{})
		for range 3 {
			if diff := cmp.Diff([]string{"completed"}, show(carryOut(t.Context(), h, turn("x"), false))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		if diff := cmp.Diff([]string{"message/stream", "message/send", "message/send", "message/send"},
			a.asked); diff != "" {
			t.Errorf("the agent is asked (-want +got):\n%s", diff)
		}
	})
}

// TestAContinueNeedsNoStream: a task of a known name is continued as its caller asks.
func TestAContinueNeedsNoStream(t *testing.T) {
	a := &namer03{streams: true, after: time.Second}
	withAgent(t, a, names03, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		a.canceled = make(chan struct{})
		again := turn("x")
		again.From, again.Ref = task.AwaitingInput, agent.Ref{Task: "its own"}
		if diff := cmp.Diff([]string{"completed"}, show(carryOut(t.Context(), h, again, false))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"message/send"}, a.asked); diff != "" {
			t.Errorf("the agent is asked (-want +got):\n%s", diff)
		}
	})
}
