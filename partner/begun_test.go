// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// finishing is an agent finishing without a word after a time.
func finishing(after time.Duration) *script {
	return &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		select {
		case <-time.After(after):
			yield(agent.Report{State: task.AwaitingCompletion, NativeState: "completed"}, nil)
		case <-ctx.Done():
		}
	}}
}

// TestBegun: the beginning of a waiting start is stored and notified while the agent works, if it has not answered
// soon, or its caller has left. If the dialect does not ask for it, the beginning waits for the agent's answer.
func TestBegun(t *testing.T) {
	begun, soon, late := []task.State{task.Accepted, task.Working}, 20*time.Millisecond, 5*time.Second
	for name, tc := range map[string]struct {
		begun  bool
		takes  time.Duration // of the agent
		leaves time.Duration // when the caller leaves; 0 for never
		want   []task.State  // notified after a second
	}{
		"not yet answered":       {begun: true, takes: late, want: begun},
		"answered soon":          {begun: true, takes: soon, want: append(begun, task.AwaitingCompletion)},
		"the caller has left":    {begun: true, takes: late, leaves: soon, want: begun},
		"not shown":              {takes: late},
		"not shown, and is left": {takes: late, leaves: soon},
	} {
		for _, inline := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					w := &witness{hooks: make(map[string]bool), notified: make(map[string][]task.State)}
					var fake Agent = finishing(tc.takes)
					if !inline {
						fake = byEngine{fake}
					}
					b := setUpWith(t, memory(t), fake, Options{Watcher: w})
					log := b.LogOf(leader, "t1")
					w.hooks[log] = true
					ctx := t.Context()
					if tc.leaves > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tc.leaves)
						defer cancel()
					}
					began := time.Now()
					done := make(chan error)
					go func() {
						_, err := b.Do(ctx, leader, call(task.Start, "t1", func(c *Request) {
							c.Begun, c.Terms.Response = tc.begun, time.Minute
						}))
						done <- err
					}()
					bubble.Pass(time.Second)
					w.mu.Lock()
					if d := cmp.Diff(tc.want, w.notified[log]); d != "" {
						t.Errorf("notified (-want +got):\n%s", d)
					}
					w.mu.Unlock()
					if err := <-done; (err != nil) != (tc.leaves > 0) {
						t.Errorf("it is answered %v", err)
					}
					bubble.Pass(10 * time.Second)
					b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
					if at := b.do(call(task.Get, "t1")).StatusHistory[1].ChangedAt; tc.begun && at.Sub(began) > time.Second {
						t.Errorf("it is working after %v", at.Sub(began))
					}
					synctest.Wait()
				})
			})
		}
	}
}

// TestRefusedWhenBegun: an agent fails the task if it refuses a start after its beginning was shown. A caller still
// waiting is answered by the error, as if the agent had refused at once.
func TestRefusedWhenBegun(t *testing.T) {
	for _, refusable := range []bool{true, false} {
		bubble.Test(t, func(t *testing.T) {
			b := setUp(t, memory(t), refusing(time.Second))
			_, err := b.Do(t.Context(), leader, call(task.Start, "t1", func(c *Request) {
				c.Refusable, c.Begun = refusable, true
			}))
			if _, refused := errors.AsType[*task.Error](err); refused != refusable {
				t.Errorf("it is answered %v", err)
			}
			b.wantStates("t1", task.Accepted, task.Working, task.Failed)
		})
	}
}

// TestBegunOfFollowed: a caller following a start, without waiting for it, is shown its beginning while the agent has
// still to answer, if the agent reports nothing before that. An agent may be offline, so one without the message has
// not begun.
func TestBegunOfFollowed(t *testing.T) {
	for _, tc := range []struct {
		name        string
		begun, sent bool
		takes       time.Duration
		want        task.State // after a second
	}{
		{"sent", true, true, time.Minute, task.Working},
		{"answered soon", true, true, 20 * time.Millisecond, task.AwaitingCompletion},
		{"not sent", true, false, time.Minute, task.None},
		{"not asked for", false, true, time.Minute, task.None},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				fake := &script{run: func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
					if tc.sent && turn.Sent != nil {
						defer turn.Sent()()
					}
					bubble.Pass(tc.takes)
					yield(agent.Report{State: task.AwaitingCompletion, NativeState: "completed"}, nil)
				}}
				b := setUp(t, memory(t), fake)
				shown := func(command task.Command) task.State {
					return b.do(call(command, "t1", func(c *Request) {
						c.Tentative, c.Followed, c.Begun, c.Terms.Response = true, true, tc.begun, task.NoWait
					})).Status.State
				}
				shown(task.Start)
				bubble.Pass(time.Second)
				if got := shown(task.Get); got != tc.want {
					t.Errorf("it is %q, want %q", got, tc.want)
				}
				bubble.Pass(2 * time.Minute)
				b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
			})
		})
	}
}
