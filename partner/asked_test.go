// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestAsked: a continue brings along the agent's question, also after a restart, and no other turn does.
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

// TestAskedAfterRestart: a continue not sent before a restart still brings along the question it answers.
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

// TestCancelOfATurn: an agent is given the right turn to cancel, and its answer is kept.
func TestCancelOfATurn(t *testing.T) {
	for _, c := range []struct {
		name   string
		report agent.Report // of the turn
		from   task.State
		works  bool
	}{
		{"it works", agent.Report{State: task.Working, NativeState: "working"}, task.Working, true},
		{"it asks", agent.Report{State: task.AwaitingInput, NativeState: "asks"}, task.AwaitingInput, true},
		{"the message waits", agent.Report{Delivery: agent.DeliveryQueued}, task.Working, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var got *agent.Turn
				var works bool
				fake := &script{
					run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
						if yield(c.report, nil) {
							hangs().run(ctx, turn, yield)
						}
					},
					cancel: func(_ context.Context, turn *agent.Turn) (agent.Report, error) {
						got, works = turn, turn.HasWork(t.Context())
						return agent.Report{State: task.Canceled, Items: []task.DataItem{task.Text("I may continue")}}, nil
					},
				}
				b := setUp(t, memory(t), fake)
				b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
				end := b.do(call(task.Cancel, "t1"))
				if got == nil || got.From != c.from || works != c.works {
					t.Errorf("the agent is given %+v, and works: %v", got, works)
				}
				if d := cmp.Diff([]task.DataItem{task.Text("I may continue")}, end.Status.DataItems); d != "" {
					t.Errorf("the status (-want +got):\n%s", d)
				}
			})
		})
	}
}

// TestCancelWhileSentAgain: the agent does not work on a message that is refused, and sent again at once.
func TestCancelWhileSentAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		canceled, worked := make(chan struct{}), false
		fake := &script{
			run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				<-canceled
				for range 1000 {
					for _, d := range []agent.Delivery{agent.DeliveryQueued, agent.DeliverySending} {
						if !yield(agent.Report{Delivery: d}, nil) {
							return
						}
					}
				}
				yield(agent.Report{Delivery: agent.DeliveryQueued}, nil)
			},
			cancel: func(_ context.Context, turn *agent.Turn) (agent.Report, error) {
				close(canceled)
				for range 1000 {
					worked = worked || turn.HasWork(t.Context())
				}
				return agent.Report{State: task.Canceled}, nil
			},
		}
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
		b.do(call(task.Cancel, "t1"))
		if worked {
			t.Error("the agent is said to work on a message that it refuses")
		}
	})
}

// TestCancelWhileSent: a cancel knows the agent's answer to the message being sent, and does not wait for it longer
// than its patience.
func TestCancelWhileSent(t *testing.T) {
	const patience = 2 * time.Second
	queued, sending := agent.Report{Delivery: agent.DeliveryQueued}, agent.Report{Delivery: agent.DeliverySending}
	working := agent.Report{State: task.Working, NativeState: "working"}
	for _, c := range []struct {
		name   string
		before []agent.Report // of the turn, before the task is canceled
		answer *agent.Report  // a second later; nil: the turn ends then
		works  bool
		after  time.Duration
	}{
		{"refused for now", []agent.Report{queued, sending}, &queued, false, time.Second},
		{"refused for now at first", nil, &queued, false, time.Second},
		{"taken", []agent.Report{queued, sending}, &working, true, time.Second},
		{"acknowledged", nil, &agent.Report{Delivery: agent.DeliveryAcknowledged}, true, time.Second},
		{"ended", []agent.Report{queued, sending}, nil, false, time.Second},
		{"not answered", []agent.Report{queued, sending}, &sending, true, patience},
		{"known before", []agent.Report{working}, &sending, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				canceled := make(chan struct{})
				var works bool
				var after time.Duration
				fake := &script{
					run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
						for _, rep := range c.before {
							if !yield(rep, nil) {
								return
							}
						}
						<-canceled
						time.Sleep(time.Second)
						if c.answer == nil {
							yield(agent.Report{State: task.Failed}, nil)
						} else if yield(*c.answer, nil) {
							hangs().run(ctx, turn, yield)
						}
					},
					cancel: func(_ context.Context, turn *agent.Turn) (agent.Report, error) {
						close(canceled)
						begun := time.Now()
						ctx, stop := context.WithTimeout(t.Context(), patience)
						defer stop()
						works, after = turn.HasWork(ctx), time.Since(begun)
						return agent.Report{State: task.Canceled}, nil
					},
				}
				b := setUp(t, memory(t), fake)
				b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
				b.do(call(task.Cancel, "t1"))
				if works != c.works || after != c.after {
					t.Errorf("the agent works: %v, known after %v; want %v after %v", works, after, c.works, c.after)
				}
			})
		})
	}
}
