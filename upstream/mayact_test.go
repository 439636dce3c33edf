// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestMayAct: nothing is sent about a turn until the process may act for its task, and nothing if it never may.
func TestMayAct(t *testing.T) {
	for name, act := range map[string]func(a *upstream.Agent, t *testing.T, turn *agent.Turn){
		"run": func(a *upstream.Agent, t *testing.T, turn *agent.Turn) {
			for range a.Run(t.Context(), turn, false) {
			}
		},
		"stream": func(a *upstream.Agent, t *testing.T, turn *agent.Turn) {
			for range a.Run(t.Context(), turn, true) {
			}
		},
		"inline": func(a *upstream.Agent, t *testing.T, turn *agent.Turn) {
			in := a.Inline(turn)
			in.Wait(t.Context(), time.Now().Add(time.Minute))
			for range in.Rest() {
			}
		},
		"cancel": func(a *upstream.Agent, t *testing.T, turn *agent.Turn) { a.Cancel(t.Context(), turn) },
	} {
		for _, never := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var first atomic.Int64 // when something came first
				handler := script{"send": says(is("completed")), "sendSubscribe": says(is("completed")),
					"cancel": says(is("canceled"))}.handler()
				begun := time.Now()
				withAgent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					first.CompareAndSwap(0, int64(time.Since(begun)))
					handler.ServeHTTP(w, r)
				}), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
					begun = time.Now()
					of := turn("x")
					of.MayAct = func(ctx context.Context) error {
						if never {
							return errors.New("another process has taken the task over")
						}
						bubble.Pass(time.Until(begun.Add(5 * time.Second)))
						return nil
					}
					act(a, t, of)
				})
				if at := time.Duration(first.Load()); never && at != 0 || !never && at < 5*time.Second {
					t.Errorf("the agent was sent something after %v", at)
				}
			})
		}
	}
}

// TestHeldBack: a message held back until the run ends is reported as not sent, unless an attempt before may have
// reached the agent. An inline part of a turn waits no longer than it may.
func TestHeldBack(t *testing.T) {
	for _, tc := range []struct {
		name   string
		how    func(context.Context, *upstream.Agent, *agent.Turn) iter.Seq2[agent.Report, error]
		before bool // an attempt before has reached the agent
		want   []agent.Delivery
	}{
		{"run", running(false), false, []agent.Delivery{agent.DeliveryQueued}},
		{"stream", running(true), false, []agent.Delivery{agent.DeliveryQueued}},
		{"inline", func(ctx context.Context, a *upstream.Agent, of *agent.Turn) iter.Seq2[agent.Report, error] {
			in, begun := a.Inline(of), time.Now()
			if _, ended := in.Wait(ctx, begun.Add(time.Second)); ended || time.Since(begun) != time.Second {
				return func(yield func(agent.Report, error) bool) { yield(agent.Report{State: task.Failed}, nil) }
			}
			return in.Rest()
		}, false, []agent.Delivery{agent.DeliveryQueued}},
		{"a second time", running(false), true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got atomic.Int64
			withAgent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("tasks/get")) {
					io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32001,"message":"no such task"}}`)
					return
				}
				got.Add(1)
				panic(http.ErrAbortHandler) // the connection breaks
			}), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
				defer stop()
				of := turn("x")
				of.MayAct = func(ctx context.Context) error {
					if tc.before && got.Load() == 0 {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				}
				var deliveries []agent.Delivery
				for rep, err := range tc.how(ctx, a, of) {
					if err == nil {
						deliveries = append(deliveries, rep.Delivery)
					}
				}
				if diff := cmp.Diff(tc.want, deliveries); diff != "" {
					t.Errorf("it is reported (-want +got):\n%s", diff)
				}
			})
			if sent := got.Load() > 0; sent != tc.before {
				t.Errorf("the agent was sent a message: %v", sent)
			}
		})
	}
}

func running(stream bool) func(context.Context, *upstream.Agent, *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(ctx context.Context, a *upstream.Agent, of *agent.Turn) iter.Seq2[agent.Report, error] {
		return a.Run(ctx, of, stream)
	}
}
