// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestUnsent: a turn with a message never sent is sent after a restart. One that may have been sent is not, if the
// agent does not know the task.
func TestUnsent(t *testing.T) {
	short := func(c *Request) { c.Terms.Response = time.Second }
	asks := func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		yield(agent.Report{State: task.AwaitingInput, NativeState: "input-required", Revision: "asked"}, nil)
	}
	for _, tc := range []struct {
		name    string
		reports []agent.Delivery
		after   time.Duration // between them
		cont    bool
		want    task.State
		from    []task.State // of the turns at the second agent
	}{
		{"it waits", []agent.Delivery{agent.DeliveryQueued}, 0, false, task.AwaitingCompletion, []task.State{task.None}},
		{"it waits since a caller has asked", []agent.Delivery{agent.DeliveryUnknown, agent.DeliveryQueued}, 2 * time.Second,
			false, task.AwaitingCompletion, []task.State{task.None}},
		{"it was sent", []agent.Delivery{agent.DeliveryQueued, agent.DeliverySending}, 0, false, task.Failed, nil},
		{"it was sent after a caller had asked", []agent.Delivery{agent.DeliveryQueued, agent.DeliverySending},
			2 * time.Second, false, task.Failed, nil},
		{"it waits again", []agent.Delivery{agent.DeliveryQueued, agent.DeliverySending, agent.DeliveryQueued},
			2 * time.Second, false, task.AwaitingCompletion, []task.State{task.None}},
		{"a continue waits", []agent.Delivery{agent.DeliveryQueued}, 0, true, task.AwaitingCompletion,
			[]task.State{task.AwaitingInput}},
		{"a continue was taken", []agent.Delivery{agent.DeliveryQueued, agent.DeliverySending, agent.DeliveryAcknowledged},
			0, true, task.AwaitingCompletion, nil},
		{"a continue was sent", []agent.Delivery{agent.DeliveryQueued, agent.DeliverySending}, 0, true, task.Failed, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := replay.NewMemory(replay.Settings{})
				defer store.Close()
				log := slog.New(slog.DiscardHandler)
				config := Config{Name: "agent", Terms: terms, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 100, Log: log}
				e, err := Open(t.Context(), store, Options{})
				if err != nil {
					t.Fatal(err)
				}
				first := &script{run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
					if tc.cont && turn.Message.Command == task.Start {
						asks(ctx, turn, yield)
						return
					}
					for _, d := range tc.reports {
						if d != agent.DeliveryUnknown && !yield(agent.Report{Delivery: d}, nil) {
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
				do := func(c *Request) task.Task {
					t.Helper()
					got, err := p.Do(t.Context(), leader, c)
					if err != nil {
						t.Fatal(err)
					}
					return got.Task
				}
				do(call(task.Start, "t1", short))
				if tc.cont {
					do(call(task.Continue, "t1"))
				}
				time.Sleep(time.Minute)
				e.Close()

				if e, err = Open(t.Context(), store, Options{}); err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				second := answers("done")
				second.resume = func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
					if turn.Acknowledged {
						yield(finished("done"), nil)
						return
					}
					yield(agent.Report{}, task.Errorf(task.TaskNotFound, "the agent does not know the task"))
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

// closing is a store. Its engine is closed during the next append, as when the shard moves.
type closing struct {
	replay.Store
	engine *Engine // nil for not yet
}

func (c *closing) Append(ctx context.Context, a replay.Append) error {
	err := c.Store.Append(ctx, a)
	if e := c.engine; e != nil {
		c.engine = nil
		go e.Close()
		<-e.base.Done()
	}
	return err
}

// TestUnsentByMove: a continue stored while the shard moves, and not begun, is sent by the next owner. The owner need
// not ask the agent for it.
func TestUnsentByMove(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &closing{Store: replay.NewMemory(replay.Settings{})}
		defer store.Close()
		e, err := Open(t.Context(), store, Options{})
		if err != nil {
			t.Fatal(err)
		}
		config := setUp(t, memory(t), bringTo(task.AwaitingInput)).Config
		p := e.Register(config)
		if _, err := p.Do(t.Context(), leader, call(task.Start, "t1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		store.engine = e
		again := call(task.Continue, "t1", func(c *Request) { c.Message.ID = "again" })
		if _, err := p.Do(t.Context(), leader, again); !errors.Is(err, replay.ErrFenced) {
			t.Errorf("the answer of the former owner is %v", err)
		}
		synctest.Wait()
		if e, err = Open(t.Context(), store, Options{}); err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		next := answers("done")
		next.resume = func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			t.Error("the agent is asked")
		}
		config.Agent = next
		p = e.Register(config)
		synctest.Wait()
		got, err := p.Do(t.Context(), leader, call(task.Get, "t1"))
		if err != nil || got.Task.Status.State != task.AwaitingCompletion || len(next.turns) != 1 {
			t.Errorf("the task is %s, %v; the agent was given %d turns", got.Task.Status.State, err, len(next.turns))
		}
	})
}

// TestUnsentHeldBack: a turn with a message held back until the shard moved, or waiting for the agent, is sent at once
// by the next owner. From then on it may have been sent, so the owner after that one asks the agent first.
func TestUnsentHeldBack(t *testing.T) {
	held := func(before ...agent.Delivery) func(context.Context, *agent.Turn, func(agent.Report, error) bool) {
		return func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			for _, d := range before {
				yield(agent.Report{Delivery: d}, nil)
			}
			<-ctx.Done()
			if len(before) > 0 || yield(agent.Report{Delivery: agent.DeliveryQueued}, nil) {
				yield(agent.Report{}, ctx.Err())
			}
		}
	}
	for _, tc := range []struct {
		name    string
		command task.Command
		inline  bool
		run     func(context.Context, *agent.Turn, func(agent.Report, error) bool)
		asked   bool // the next owner asks the agent first
	}{
		{"a start", task.Start, false, held(), false},
		{"a start, inline", task.Start, true, held(), false},
		{"a start that waits", task.Start, false, held(agent.DeliveryQueued), false},
		{"a start that was sent", task.Start, false, held(agent.DeliveryQueued, agent.DeliverySending), true},
		{"a continue", task.Continue, false, held(), false},
		{"a continue, inline", task.Continue, true, held(), false},
		{"a continue that was sent", task.Continue, true, held(agent.DeliveryQueued, agent.DeliverySending), true},
		{"nothing is known", task.Start, true, hangs().run, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := memory(t)
				var agentOf [3]*script
				for i := range agentOf {
					agentOf[i] = hangs()
				}
				agentOf[0].run = func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
					if turn.Message.Command != tc.command {
						yield(agent.Report{State: task.AwaitingInput, NativeState: "input-required"}, nil)
						return
					}
					tc.run(ctx, turn, yield)
				}
				var asked, given [3]int
				for i, a := range agentOf {
					a.resume = func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
						asked[i]++
						hangs().run(ctx, turn, yield)
					}
					e, err := Open(t.Context(), store, Options{})
					if err != nil {
						t.Fatal(err)
					}
					config := Config{Name: "agent", Agent: a, Terms: terms, MaxEvents: 1000, MaxBytes: 1 << 20,
						MaxTasks: 100, Log: slog.New(slog.DiscardHandler)}
					if tc.inline {
						config.Agent = inlined{a}
					}
					p := e.Register(config)
					var caller sync.WaitGroup
					if i == 0 {
						if tc.command == task.Continue {
							if _, err := p.Do(t.Context(), leader, call(task.Start, "t1")); err != nil {
								t.Fatal(err)
							}
						}
						caller.Go(func() { p.Do(t.Context(), leader, call(tc.command, "t1")) })
					}
					synctest.Wait()
					e.Close()
					caller.Wait()
					given[i] = a.turnCount()
				}
				first, next := 1, [3]int{0, 0, 1}
				if tc.command == task.Continue {
					first = 2
				}
				want := [3]int{first, 1, 0}
				if tc.asked {
					want, next = [3]int{first, 0, 0}, [3]int{0, 1, 1}
				}
				if given != want || asked != next {
					t.Errorf("the agent was given turns %v, want %v; and was asked %v, want %v", given, want, asked, next)
				}
			})
		})
	}
}
