// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestUnsent holds that a turn whose message was never sent is sent after a restart, and one that may have been sent is
// not, where the agent does not know the task.
func TestUnsent(t *testing.T) {
	short := func(c *task.Call) { c.Terms.Response = time.Second }
	asks := func(_ context.Context, _ *task.Turn, yield func(task.Report, error) bool) {
		yield(task.Report{State: task.AwaitingInput, Said: "input-required", Stamp: "asked"}, nil)
	}
	for _, tc := range []struct {
		name    string
		reports []task.Delivery
		after   time.Duration // between them
		cont    bool
		want    task.State
		from    []task.State // of the turns that the second agent is given
	}{
		{"it waits", []task.Delivery{task.Waiting}, 0, false, task.AwaitingCompletion, []task.State{task.None}},
		{"it waits since somebody has asked", []task.Delivery{task.NoNews, task.Waiting}, 2 * time.Second, false, task.AwaitingCompletion, []task.State{task.None}},
		{"it was sent", []task.Delivery{task.Waiting, task.Sending}, 0, false, task.Failed, nil},
		{"it was sent after somebody had asked", []task.Delivery{task.Waiting, task.Sending}, 2 * time.Second, false, task.Failed, nil},
		{"it waits again", []task.Delivery{task.Waiting, task.Sending, task.Waiting}, 2 * time.Second, false, task.AwaitingCompletion, []task.State{task.None}},
		{"a continue waits", []task.Delivery{task.Waiting}, 0, true, task.AwaitingCompletion, []task.State{task.AwaitingInput}},
		{"a continue was taken", []task.Delivery{task.Waiting, task.Sending, task.Taken}, 0, true, task.AwaitingCompletion, nil},
		{"a continue was sent", []task.Delivery{task.Waiting, task.Sending}, 0, true, task.Failed, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := replay.NewMemory(replay.Settings{})
				defer store.Close()
				log := slog.New(slog.DiscardHandler)
				config := Config{Name: "agent", Terms: terms, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 100, Log: log}
				e, err := Open(t.Context(), store, nil)
				if err != nil {
					t.Fatal(err)
				}
				first := &script{run: func(ctx context.Context, turn *task.Turn, yield func(task.Report, error) bool) {
					if tc.cont && turn.Message.Command == task.Start {
						asks(ctx, turn, yield)
						return
					}
					for _, d := range tc.reports {
						if d != task.NoNews && !yield(task.Report{Delivery: d}, nil) {
							return
						}
						select {
						case <-time.After(tc.after):
						case <-ctx.Done():
						}
					}
					hangs().run(ctx, turn, yield)
				}}
				config.Agent = first
				p := e.Register(config)
				do := func(c *task.Call) task.Task {
					t.Helper()
					got, err := p.Do(t.Context(), leader, c)
					if err != nil {
						t.Fatal(err)
					}
					return got
				}
				do(call(task.Start, "t1", short))
				if tc.cont {
					do(call(task.Continue, "t1"))
				}
				time.Sleep(time.Minute)
				e.Close()

				if e, err = Open(t.Context(), store, nil); err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				second := answers("done")
				second.resume = func(_ context.Context, turn *task.Turn, yield func(task.Report, error) bool) {
					if turn.Taken {
						yield(finished("done"), nil)
						return
					}
					yield(task.Report{}, task.Errorf(task.TaskNotFound, "the agent does not know the task"))
				}
				config.Agent = second
				p = e.Register(config)
				synctest.Wait()
				if got := do(call(task.Get, "t1")); got.Status.State != tc.want {
					t.Errorf("the task is %s, want %s", got.Status.State, tc.want)
				}
				var from []task.State
				for i := range second.turns {
					from = append(from, second.turns[i].From)
				}
				if diff := cmp.Diff(tc.from, from); diff != "" {
					t.Errorf("the agent is given turns from (-want +got):\n%s", diff)
				}
			})
		})
	}
}
