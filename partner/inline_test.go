// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// inlined is a script with turns for the inline way.
type inlined struct{ *script }

func (s inlined) Inline(t *agent.Turn) InlineTurn {
	return &scriptedTurn{script: s.script, turn: t, interrupted: make(chan struct{})}
}

// byEngine is an agent without inline turns.
type byEngine struct{ Agent }

// scriptedTurn is a turn of a script. A panic of the script is one of Wait.
type scriptedTurn struct {
	script      *script
	turn        *agent.Turn
	interrupt   sync.Once
	interrupted chan struct{}
	reports     chan scripted
	taken       chan struct{} // the last of reports, valid until then
	first       *scripted     // read by Wait; nil for none
	stop        chan struct{} // closed when no more reports are taken
}

type scripted struct {
	rep   agent.Report
	err   error
	panic any
	over  bool
}

func (s *scriptedTurn) Interrupt() { s.interrupt.Do(func() { close(s.interrupted) }) }

func (s *scriptedTurn) Wait(ctx context.Context, until time.Time) (agent.Report, bool) {
	s.reports, s.taken, s.stop = make(chan scripted), make(chan struct{}), make(chan struct{})
	go func() {
		send := func(r scripted) bool {
			select {
			case s.reports <- r:
				return true
			case <-s.stop:
				return false
			}
		}
		defer func() { send(scripted{panic: recover(), over: true}) }()
		for rep, err := range s.script.Run(ctx, s.turn, false) {
			if !send(scripted{rep: rep, err: err}) {
				return
			}
			select {
			case <-s.taken:
			case <-s.stop:
				return
			}
		}
	}()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case r := <-s.reports:
		if r.panic != nil {
			panic(r.panic)
		}
		if r.err == nil && r.rep.EndsTurn() {
			close(s.stop)
			return r.rep, true
		}
		s.first = &r
	case <-s.interrupted:
	case <-timer.C:
	}
	return agent.Report{}, false
}

func (s *scriptedTurn) Rest() iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		defer close(s.stop)
		for {
			var r scripted
			if s.first != nil {
				r, s.first = *s.first, nil
			} else {
				r = <-s.reports
			}
			if r.panic != nil {
				panic(r.panic)
			}
			if r.over || !yield(r.rep, r.err) {
				return
			}
			s.taken <- struct{}{}
		}
	}
}

// outcomeOf is the whole outcome of a start.
type outcomeOf struct {
	Answer   task.Task
	Err      string
	Records  []string
	Metadata string
	Turns    int
}

// TestInlineIsTheSame: an inline turn leaves the same log, the same answer and the same calls of the agent as one
// carried out by the engine, whatever the agent does, and whatever happens meanwhile.
func TestInlineIsTheSame(t *testing.T) {
	type yield = func(agent.Report, error) bool
	after := func(d time.Duration, then func(context.Context, yield)) *script {
		s := &script{run: func(ctx context.Context, _ *agent.Turn, y yield) {
			select {
			case <-time.After(d):
				then(ctx, y)
			case <-ctx.Done():
				y(agent.Report{}, task.Errorf(task.Internal, "stopped").WithCause(ctx.Err()))
			}
		}}
		s.resume = hangs().run
		return s
	}
	agents := map[string]func(d time.Duration) *script{
		"answers": func(d time.Duration) *script {
			return after(d, func(_ context.Context, y yield) { y(finished("a"), nil) })
		},
		"asks": func(d time.Duration) *script {
			return after(d, func(_ context.Context, y yield) {
				y(agent.Report{State: task.AwaitingInput, NativeState: "input-required"}, nil)
			})
		},
		"rejects": func(d time.Duration) *script {
			return after(d, func(_ context.Context, y yield) {
				y(agent.Report{State: task.Rejected, NativeState: "rejected"}, nil)
			})
		},
		"is canceled": func(d time.Duration) *script {
			return after(d, func(_ context.Context, y yield) {
				y(agent.Report{State: task.Canceled, NativeState: "canceled"}, nil)
			})
		},
		"works, and answers": func(d time.Duration) *script {
			return after(d, func(ctx context.Context, y yield) {
				if y(agent.Report{State: task.Working, NativeState: "working"}, nil) {
					after(d, func(_ context.Context, y yield) { y(finished("a"), nil) }).run(ctx, nil, y)
				}
			})
		},
		"waits for a slot": func(d time.Duration) *script {
			return after(0, func(ctx context.Context, y yield) {
				if y(agent.Report{Delivery: agent.DeliveryQueued}, nil) {
					after(d, func(_ context.Context, y yield) {
						_ = y(agent.Report{Delivery: agent.DeliverySending}, nil) && y(finished("a"), nil)
					}).run(ctx, nil, y)
				}
			})
		},
		"cannot be reached": func(d time.Duration) *script {
			return after(d, func(_ context.Context, y yield) {
				y(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent cannot be reached"))
			})
		},
		"breaks, and is resumed": func(d time.Duration) *script {
			s := after(d, func(_ context.Context, y yield) {
				y(agent.Report{}, task.Errorf(task.InvalidAgentResponse, "the connection broke"))
			})
			s.resume = after(d, func(_ context.Context, y yield) { y(finished("b"), nil) }).run
			return s
		},
		"breaks": func(d time.Duration) *script {
			s := after(d, func(_ context.Context, y yield) {
				y(agent.Report{}, task.Errorf(task.InvalidAgentResponse, "the connection broke"))
			})
			s.resume = nil
			return s
		},
		"ends without an answer": func(d time.Duration) *script {
			return after(d, func(context.Context, yield) {})
		},
		"has a bug": func(d time.Duration) *script {
			return after(d, func(context.Context, yield) { panic("bug") })
		},
		"never answers": func(time.Duration) *script { return hangs() },
	}
	// The events after a time, during the wait for the start.
	events := map[string]func(b *bench, leave func()){
		"nothing": func(*bench, func()) {},
		"get": func(b *bench, _ func()) {
			_, _ = b.Do(b.t.Context(), leader, call(task.Get, "t1"))
		},
		"cancel": func(b *bench, _ func()) {
			_, _ = b.Do(b.t.Context(), leader, call(task.Cancel, "t1"))
		},
		"repeated start": func(b *bench, _ func()) {
			_, _ = b.Do(b.t.Context(), leader, call(task.Start, "t1"))
		},
		"the caller leaves": func(_ *bench, leave func()) { leave() },
		"the configuration is replaced": func(b *bench, _ func()) {
			defer b.engine.Register(b.Config).Unregister()
			b.Unregister()
		},
		"the engine closes": func(b *bench, _ func()) { b.engine.Close() },
	}
	moments := []time.Duration{0, 100 * time.Millisecond, 600 * time.Millisecond, 3 * time.Second}
	for name, agentOf := range agents {
		t.Run(name, func(t *testing.T) {
			for event, happen := range events {
				for _, d := range []time.Duration{0, 70 * time.Millisecond, 900 * time.Millisecond, time.Minute} {
					for _, at := range moments {
						var want, got outcomeOf
						run := func(o *outcomeOf, wrap func(*script) Agent) {
							bubble.Test(t, func(t *testing.T) {
								s := agentOf(d)
								*o = startAndHave(t, wrap(s), happen, at+time.Microsecond)
								o.Turns = s.turnCount()
							})
						}
						run(&want, func(s *script) Agent { return byEngine{s} })
						run(&got, func(s *script) Agent { return inlined{s} })
						if event == "the caller leaves" { // it may be answered all the same
							want.Answer, want.Err, got.Answer, got.Err = task.Task{}, "", task.Task{}, ""
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("%s after %v, the agent after %v (-engine +inline):\n%s", event, at, d, diff)
						}
					}
				}
			}
		})
	}
}

// startAndHave starts a task, has something happen after a time, and returns the outcome when all has ended.
func startAndHave(
	t *testing.T, a Agent, happen func(b *bench, leave func()), after time.Duration,
) (o outcomeOf) {
	t.Helper()
	store := replay.NewMemory(replay.Settings{})
	defer store.Close()
	same := replay.Append{Log: logname.SecretOfTasks, Metadata: encodeSecret(naming{secret: make([]byte, secretSize)})}
	if err := store.Append(t.Context(), same); err != nil {
		t.Fatal(err)
	}
	b := setUp(t, store, a)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var other sync.WaitGroup
	other.Go(func() {
		time.Sleep(after)
		happen(b, leave)
	})
	answer, err := b.Do(ctx, leader, call(task.Start, "t1", func(c *Request) { c.Terms.Response = 2 * time.Second }))
	o.Answer = answer.Task
	if err != nil {
		o.Err = err.Error()
	}
	other.Wait()
	time.Sleep(10 * time.Minute)
	b.engine.Close()
	head, _, records, err := store.Load(t.Context(), logname.New("agent", leader, "t1"))
	if err != nil && !errors.Is(err, replay.ErrNotFound) {
		t.Fatal(err)
	}
	o.Metadata = string(head.Metadata)
	for _, r := range records {
		o.Records = append(o.Records, fmt.Sprint(r.Seq, " ", string(r.Data)))
	}
	return o
}

// TestInlineWaitsNoLongerThanItMay: a caller is answered in its response time, and about as soon as one of the engine
// when it leaves or the process stops.
func TestInlineWaitsNoLongerThanItMay(t *testing.T) {
	for _, tc := range []struct {
		name            string
		response, leave time.Duration
		stop            time.Duration
		most            time.Duration
		err             error
	}{
		{"response time", 2 * time.Second, time.Hour, time.Hour, 2 * time.Second, nil},
		{"short response time", time.Millisecond, time.Hour, time.Hour, time.Millisecond, nil},
		{"leaves at once", time.Minute, time.Millisecond, time.Hour, inlineMost, context.Canceled},
		{"leaves later", time.Minute, time.Second, time.Hour, time.Second, context.Canceled},
		{"stops at once", time.Minute, time.Hour, 0, inlineMost + time.Second, nil},
		{"stops later", time.Minute, time.Hour, 3 * time.Second, 4 * time.Second, nil},
	} {
		bubble.Test(t, func(t *testing.T) {
			stopping := make(chan struct{})
			fake := hangs()
			b := setUp(t, memory(t), inlined{fake}, func(c *Config) { c.Stopping, c.Drain = stopping, time.Second })
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(tc.leave, leave)
			time.AfterFunc(tc.stop, func() { close(stopping) })
			begun := time.Now()
			got, err := b.Do(ctx, leader, call(task.Start, "t1", func(c *Request) { c.Terms.Response = tc.response }))
			if took := time.Since(begun); took > tc.most || !errors.Is(err, tc.err) {
				t.Errorf("%s: answered after %v, want at most %v: %v", tc.name, took, tc.most, err)
			}
			if tc.err == nil && got.Task.Status.State != task.Working {
				t.Errorf("%s: the task is %q", tc.name, got.Task.Status.State)
			}
			if b.do(call(task.Get, "t1")).Status.State != task.Working || fake.turnCount() != 1 {
				t.Errorf("%s: the turn is not continued: %d turns", tc.name, fake.turnCount())
			}
			b.do(call(task.Cancel, "t1"))
			b.engine.Close()
			time.Sleep(2 * time.Hour) // both timers end
		})
	}
}

// TestInlineAndTheStore: a report refused by the store is kept and stored later, and its caller is answered with the
// error at once.
func TestInlineAndTheStore(t *testing.T) {
	for _, tc := range []struct {
		err   error
		kind  task.Kind
		after task.State // when the store can be written again
	}{
		{replay.ErrUnavailable, task.StoreUnavailable, task.AwaitingCompletion},
		{replay.ErrClosed, task.Internal, task.Working},
	} {
		bubble.Test(t, func(t *testing.T) {
			store := ill(t)
			fake := &script{run: func(_ context.Context, _ *agent.Turn, y func(agent.Report, error) bool) {
				store.ail(tc.err, false)
				y(finished("a"), nil)
			}}
			fake.resume = hangs().run
			b := setUp(t, store, inlined{fake})
			began := time.Now()
			b.want(call(task.Start, "t1"), tc.kind)
			if took := time.Since(began); took != 0 {
				t.Errorf("answered after %v", took)
			}
			store.heal(true)
			time.Sleep(time.Minute)
			if got := b.do(call(task.Get, "t1")).Status.State; got != tc.after || fake.turnCount() != 1 {
				t.Errorf("the task is %q, after %d turns", got, fake.turnCount())
			}
			b.engine.Close()
		})
	}
}

// TestInlineIsNotWaitedFor: a start is carried out by the engine if its caller is refused the memory for the answer.
func TestInlineIsNotWaitedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := answers("a")
		b := setUp(t, memory(t), inlined{fake})
		refused := errors.New("no memory")
		_, err := b.Do(t.Context(), leader, call(task.Start, "t1", func(c *Request) {
			c.Reserve = func(_ context.Context, n int64) error {
				if n == 0 {
					return refused
				}
				return nil
			}
		}))
		if err != refused {
			t.Errorf("answered with %v", err)
		}
		synctest.Wait()
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
		if n := fake.turnCount(); n != 1 {
			t.Errorf("the agent was given %d turns", n)
		}
	})
}
