// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// rivaled is a store with another writer of tasks, always faster, once.
func rivaled(t *testing.T) *replaytest.Rival {
	return &replaytest.Rival{Store: memory(t), Classes: string(logname.Task)}
}

// TestConflicts has another writer be faster than each write of a task, once: no caller sees it, the agent has one turn
// for each message, and is asked to stop once.
func TestConflicts(t *testing.T) {
	asks := agent.Report{State: task.AwaitingInput, Items: []task.DataItem{task.Text("which?")}}
	for name, test := range map[string]struct {
		turns []agent.Report // the last report of each turn
		run   func(t *testing.T, b *bench)
		want  []task.State
	}{
		"completed": {[]agent.Report{asks, finished("done")}, func(t *testing.T, b *bench) {
			b.do(call(task.Start, "t"))
			b.do(call(task.Continue, "t"))
			b.do(call(task.Complete, "t"))
		}, []task.State{task.Accepted, task.Working, task.AwaitingInput, task.Working, task.AwaitingCompletion,
			task.Completed}},
		"canceled": {[]agent.Report{asks}, func(t *testing.T, b *bench) {
			b.do(call(task.Start, "t"))
			b.do(call(task.Cancel, "t"))
		}, []task.State{task.Accepted, task.Working, task.AwaitingInput, task.Canceled}},
		"canceled while the agent works": {[]agent.Report{{State: task.Working}}, func(t *testing.T, b *bench) {
			b.do(call(task.Start, "t", func(c *Request) { c.Terms.Response = time.Second }))
			b.do(call(task.Cancel, "t"))
		}, []task.State{task.Accepted, task.Working, task.Canceled}},
		"failed by the operator": {[]agent.Report{{State: task.Working}}, func(t *testing.T, b *bench) {
			b.do(call(task.Start, "t", func(c *Request) { c.Terms.Response = time.Second }))
			if _, err := b.engine.Fail(t.Context(), b.Name, leader, "t", ""); err != nil {
				t.Error(err)
			}
		}, []task.State{task.Accepted, task.Working, task.Failed}},
		"not answered in time": {[]agent.Report{asks}, func(t *testing.T, b *bench) {
			b.do(call(task.Start, "t"))
			bubble.Pass(terms.AwaitingInput + time.Minute)
		}, []task.State{task.Accepted, task.Working, task.AwaitingInput, task.Canceled}},
		"watched": {[]agent.Report{asks}, func(t *testing.T, b *bench) {
			b.do(call(task.Start, "t"))
			if err := b.Watch(t.Context(), leader, "t", func(string, task.Position) error { return nil }); err != nil {
				t.Error(err)
			}
		}, []task.State{task.Accepted, task.Working, task.AwaitingInput}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store, turns, cancels := rivaled(t), 0, 0
				b := setUp(t, store, &script{
					run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
						turns++
						if rep := test.turns[turns-1]; yield(rep, nil) && !rep.State.Settled() {
							<-ctx.Done()
						}
					},
					cancel: func(context.Context, *agent.Turn) (agent.Report, error) {
						cancels++
						return agent.Report{State: task.Canceled}, nil
					},
				})
				test.run(t, b)
				if diff := cmp.Diff(test.want, states(b.do(call(task.Get, "t")))); diff != "" {
					t.Errorf("the states (-want +got):\n%s", diff)
				}
				if turns != len(test.turns) || cancels > 1 {
					t.Errorf("%d turns, and %d cancels", turns, cancels)
				}
				if n := store.Wins(); n < len(test.want)/2 {
					t.Errorf("the other writer was faster %d times only", n)
				}
			})
		})
	}
}
