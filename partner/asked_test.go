// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestAsked holds that a continue brings along what the agent has asked, also after a restart, and that no other turn
// does.
func TestAsked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		question := []task.DataItem{task.Text("which?"), {Kind: task.DataKind, Data: []byte(`{"id":"q"}`)}}
		asks := func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
			switch {
			case turn.From == task.None:
				yield(agent.Report{State: task.AwaitingInput, NativeState: "asks", Items: question}, nil)
			case turn.From == task.AwaitingInput:
				yield(finished("done"), nil)
			default:
				yield(agent.Report{Delivery: agent.DeliveryQueued}, nil)
				hangs().run(ctx, turn, yield)
			}
		}
		fake := &script{run: asks}
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1"))
		b.do(call(task.Continue, "t1"))
		b.do(call(task.Continue, "t1", func(c *Request) {
			c.Terms.Response, c.Message.ID = time.Second, "another"
		}))
		var got [][]task.DataItem
		for _, turn := range fake.turns {
			got = append(got, turn.Asked)
		}
		if d := cmp.Diff([][]task.DataItem{nil, question, nil}, got); d != "" {
			t.Errorf("what was asked (-want +got):\n%s", d)
		}
	})
}

// TestAskedAfterRestart holds that a continue which was not sent before a restart still brings along what it answers.
func TestAskedAfterRestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		question := []task.DataItem{task.Text("which?")}
		store := memory(t)
		b := setUp(t, store, &script{
			run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
				if turn.From == task.None {
					yield(agent.Report{State: task.AwaitingInput, NativeState: "asks", Items: question}, nil)
					return
				}
				yield(agent.Report{Delivery: agent.DeliveryQueued}, nil)
				hangs().run(ctx, turn, yield)
			},
		})
		b.do(call(task.Start, "t1"))
		b.do(call(task.Continue, "t1", func(c *Request) { c.Terms.Response = time.Second }))
		b.Unregister()
		b.engine.Close()
		second := answers("done")
		setUp(t, store, second)
		synctest.Wait()
		if n := second.turnCount(); n != 1 {
			t.Fatalf("it is sent %d times", n)
		}
		if d := cmp.Diff(question, second.turns[0].Asked); d != "" {
			t.Errorf("what was asked (-want +got):\n%s", d)
		}
	})
}

// TestCancelOfATurn holds what an agent is given to cancel, and that what it says to it is kept.
func TestCancelOfATurn(t *testing.T) {
	for _, c := range []struct {
		name   string
		report agent.Report // of the turn
		from   task.State
		queued bool
	}{
		{"it works", agent.Report{State: task.Working, NativeState: "working"}, task.Working, false},
		{"it asks", agent.Report{State: task.AwaitingInput, NativeState: "asks"}, task.AwaitingInput, false},
		{"the message waits", agent.Report{Delivery: agent.DeliveryQueued}, task.Working, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var got *agent.Turn
				fake := &script{
					run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
						if yield(c.report, nil) {
							hangs().run(ctx, turn, yield)
						}
					},
					cancel: func(_ context.Context, turn *agent.Turn) (agent.Report, error) {
						got = turn
						return agent.Report{State: task.Canceled, Items: []task.DataItem{task.Text("I may continue")}}, nil
					},
				}
				b := setUp(t, memory(t), fake)
				b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
				end := b.do(call(task.Cancel, "t1"))
				if got == nil || got.From != c.from || got.Queued != c.queued {
					t.Errorf("the agent is given %+v", got)
				}
				if d := cmp.Diff([]task.DataItem{task.Text("I may continue")}, end.Status.DataItems); d != "" {
					t.Errorf("the status (-want +got):\n%s", d)
				}
			})
		})
	}
}
