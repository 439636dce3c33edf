// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
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
