// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestWaitingEndsWhenTheProcessStops has calls wait for an agent still at work, and then stops the process.
func TestWaitingEndsWhenTheProcessStops(t *testing.T) {
	for name, tc := range map[string]struct {
		response time.Duration // agreed to by the Leader
		stopped  bool          // before the call comes
		most     time.Duration // the call's wait once the process stops, at most
	}{
		"while it waits":    {time.Hour, false, 5 * time.Second},
		"before it comes":   {time.Hour, true, 5 * time.Second},
		"a Leader in haste": {61 * time.Second, false, time.Second},
	} {
		bubble.Test(t, func(t *testing.T) {
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			stopping := make(chan struct{})
			b := setUp(t, store, hangs(), func(c *Config) { c.Stopping, c.Drain = stopping, 5*time.Second })
			if tc.stopped {
				close(stopping)
			} else {
				time.AfterFunc(time.Minute, func() { close(stopping) })
			}
			begin := time.Now()
			if !tc.stopped {
				begin = begin.Add(time.Minute)
			}
			got := b.do(call(task.Start, "t", func(c *Request) { c.Terms.Response = tc.response }))
			if diff := cmp.Diff(task.Working, got.Status.State); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
			if waited := time.Since(begin); waited < 0 || waited > tc.most {
				t.Errorf("%s: it was answered %s after the stop, want at most %s", name, waited, tc.most)
			}
			b.engine.Close()
		})
	}
}

// unanswered is the cause of an error after which the agent may have received the turn.
type unanswered struct{}

func (unanswered) Error() string { return "the connection broke" }

func (unanswered) Broken() bool { return true }

// TestTurnsAreHandedOn has an agent go down after the process was asked to stop, and before it has. The next process
// carries its turns out.
func TestTurnsAreHandedOn(t *testing.T) {
	unavailable := task.Errorf(task.AgentUnavailable, "the agent cannot be reached")
	broken := task.Errorf(task.InvalidAgentResponse, "the connection to the agent broke").WithCause(unanswered{})
	refused := task.Errorf(task.InvalidAgentResponse, "the agent refuses")
	for _, tc := range []struct {
		name    string
		failure error         // of the turn
		after   time.Duration // the time to its failure; the process is asked to stop after a minute
		again   error         // when the agent is asked again, an hour later
		want    task.State    // in the stopping process
		runs    int           // of the agent of the next process
	}{
		{"it cannot be reached", unavailable, time.Hour, nil, task.Working, 1},
		{"its connection breaks", broken, time.Hour, nil, task.Working, 0},
		{"its connection breaks before, and it cannot be reached then", broken, time.Second, unavailable, task.Working, 0},
		{"it cannot be reached before", unavailable, time.Second, nil, task.Failed, 0},
		{"it refuses", refused, time.Hour, refused, task.Failed, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := replay.NewMemory(replay.Settings{})
				defer store.Close()
				stopping := make(chan struct{})
				time.AfterFunc(time.Minute, func() { close(stopping) })
				var asked atomic.Int64
				goesDown := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					bubble.Pass(tc.after)
					yield(agent.Report{}, tc.failure)
				}, resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					asked.Add(1)
					bubble.Pass(time.Hour)
					yield(agent.Report{}, tc.again)
				}}
				b := setUp(t, store, goesDown, func(c *Config) { c.Stopping = stopping })
				b.do(call(task.Start, "t", func(c *Request) { c.Terms.Response = time.Millisecond }))
				bubble.Pass(3 * time.Hour)
				if n, wants := asked.Load(), tc.again != nil; n > 0 != wants {
					t.Errorf("the agent is asked again %d times", n)
				}
				if got := b.do(call(task.Get, "t")); got.Status.State != tc.want {
					t.Errorf("the task is %s, want %s", got.Status.State, tc.want)
				}
				b.Unregister()
				b.engine.Close()

				up := answers("done")
				up.resume = func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					if tc.runs > 0 {
						yield(agent.Report{}, unavailable)
						return
					}
					yield(finished("done"), nil)
				}
				next := setUp(t, store, up)
				bubble.Pass(time.Minute)
				want := tc.want
				if want == task.Working {
					want = task.AwaitingCompletion
				}
				if got := next.do(call(task.Get, "t")); got.Status.State != want || up.turnCount() != tc.runs {
					t.Errorf("then the task is %s, want %s, after %d runs, want %d", got.Status.State, want, up.turnCount(),
						tc.runs)
				}
				next.Unregister()
				next.engine.Close()
			})
		})
	}
}
