// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"strings"
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

// sick is a store with calls failing as a test has it.
type sick struct {
	replay.Store
	mu       sync.Mutex
	write    error // returned by Append
	written  bool  // and yet it writes
	read     error // returned by Load and Due
	reads    int   // the number of them, before they work again
	reopened chan struct{}
	dues     int // the number of requests to Due for all unfinished tasks
}

func ill(t *testing.T) *sick { return &sick{Store: memory(t), reopened: make(chan struct{})} }

// ail has the store fail until it is healed.
func (s *sick) ail(err error, written bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write, s.written = err, written
}

func (s *sick) heal(reopened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.write = nil; reopened {
		close(s.reopened)
		s.reopened = make(chan struct{})
	}
}

func (s *sick) Reopened() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopened
}

func (s *sick) Append(ctx context.Context, a replay.Append) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.write != nil && !s.written {
		return fmt.Errorf("sick: %w", s.write)
	}
	if err := s.Store.Append(ctx, a); err != nil {
		return err
	}
	return s.write
}

func (s *sick) reading() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads == 0 {
		return nil
	}
	s.reads--
	return s.read
}

func (s *sick) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	if err := s.reading(); err != nil {
		return replay.Head{}, nil, nil, err
	}
	return s.Store.Load(ctx, log)
}

func (s *sick) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[replay.DueLog, error] {
	if from.Equal(replay.Recover) {
		s.mu.Lock()
		s.dues++
		s.mu.Unlock()
	}
	return func(yield func(replay.DueLog, error) bool) {
		if err := s.reading(); err != nil {
			yield(replay.DueLog{}, err)
			return
		}
		s.Store.Due(ctx, class, from, until)(yield)
	}
}

// TestReportsWhileTheStoreFails: the agent's reports while the store takes nothing are kept, and stored as soon as
// possible. Waiting callers are answered at once.
func TestReportsWhileTheStoreFails(t *testing.T) {
	for _, tc := range []struct {
		name     string
		err      error
		reopened bool
		kind     task.Kind
		within   time.Duration
	}{
		{"unavailable", replay.ErrUnavailable, true, task.StoreUnavailable, 0},
		{"full", replay.ErrFull, false, task.LimitExceeded, retryMax},
		{"any other error", errors.New("a bad sector"), false, task.Internal, retryMax},
	} {
		for _, end := range []string{"finishes", "fails"} {
			t.Run(tc.name+"/"+end, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					store := ill(t)
					fake := hangs()
					fake.run = func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
						yield(agent.Report{State: task.Working, Items: []task.DataItem{task.Text("begun")}}, nil)
						time.Sleep(time.Second)
						store.ail(tc.err, false)
						if end == "fails" {
							yield(agent.Report{}, task.Errorf(task.AgentTimeout, "the agent gave up"))
							return
						}
						if !yield(agent.Report{Chunks: []task.Chunk{{Product: finished("x").Products[0]}}}, nil) {
							return
						}
						yield(finished("x"), nil)
					}
					b := setUp(t, store, fake)
					began := time.Now()
					b.want(call(task.Start, "t1"), tc.kind)
					if took := time.Since(began); took != time.Second {
						t.Errorf("the caller was answered after %v", took)
					}
					b.wantStates("t1", task.Accepted, task.Working)
					time.Sleep(10 * time.Minute)
					store.heal(tc.reopened)
					time.Sleep(tc.within)
					synctest.Wait()
					want := task.AwaitingCompletion
					if end == "fails" {
						want = task.Failed
					}
					b.wantStates("t1", task.Accepted, task.Working, want)
					if got := b.do(call(task.Get, "t1")); want != task.Failed {
						if diff := cmp.Diff(finished("x").Products, got.Products); diff != "" {
							t.Errorf("products (-want +got):\n%s", diff)
						}
					}
					if n := fake.turnCount(); n != 1 {
						t.Errorf("the turn was carried out %d times", n)
					}
				})
			})
		}
	}
}

// TestFailedAppendWasWritten: a failed Append may have been written. Nothing is added twice, and a start is not lost.
func TestFailedAppendWasWritten(t *testing.T) {
	piece := func(text string) agent.Report {
		return agent.Report{Chunks: []task.Chunk{{Product: task.Product{ID: "p1",
			DataItems: []task.DataItem{task.Text(text)}}, Append: true}}}
	}
	t.Run("a piece", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			store := ill(t)
			fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				if yield(piece("one "), nil) {
					store.ail(replay.ErrUnavailable, true)
					yield(piece("two "), nil)
				}
			}}
			fake.resume = func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(finished("one two three"), nil)
			}
			b := setUp(t, store, fake)
			b.do(call(task.Start, "t1"))
			store.heal(true)
			synctest.Wait()
			if diff := cmp.Diff(finished("one two three").Products, b.do(call(task.Get, "t1")).Products); diff != "" {
				t.Errorf("products (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("a start", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			store := ill(t)
			fake := answers("x")
			b := setUp(t, store, fake)
			synctest.Wait() // until the engine has looked for unfinished turns
			store.ail(replay.ErrUnavailable, true)
			b.want(call(task.Start, "t1"), task.StoreUnavailable)
			store.heal(true)
			synctest.Wait()
			if n := fake.turnCount(); n != 1 {
				t.Errorf("the start was carried out %d times", n)
			}
			b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
		})
	})
}

// TestRecoveryIsTriedAgain lets reads fail while unfinished turns are picked up.
func TestRecoveryIsTriedAgain(t *testing.T) {
	for _, reads := range []int{1, 2, 3, 4} {
		bubble.Test(t, func(t *testing.T) {
			store := ill(t)
			b := setUp(t, store, hangs())
			b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Millisecond }))
			b.engine.Close()
			fake := &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(finished("x"), nil)
			}}
			e, err := Open(t.Context(), store, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			synctest.Wait()
			store.mu.Lock()
			store.read, store.reads = errors.New("a bad sector"), reads
			store.mu.Unlock()
			c := b.Config
			c.Agent = fake
			defer e.Register(c).Unregister()
			time.Sleep(time.Minute)
			store.mu.Lock()
			store.reads = 0
			store.mu.Unlock()
			head, snapshot, records, err := store.Load(t.Context(), logname.New("agent", leader, "t1"))
			if err != nil {
				t.Fatal(err)
			}
			fold, err := foldAll(head, snapshot, records, 0)
			if err != nil || fold.Status().State != task.AwaitingCompletion {
				t.Errorf("after %d failed reads the task is %q, %v", reads, fold.Status().State, err)
			}
		})
	}
}

// TestRecoveryLeavesADamagedTask: a task with a part lost in the store is left after some attempts, and the others are
// resumed; while the store cannot be used at all, the attempts do not end.
func TestRecoveryLeavesADamagedTask(t *testing.T) {
	for _, tc := range []struct {
		err    error
		leaves bool
	}{{errors.New("parts of a log are missing"), true}, {replay.ErrUnavailable, false}} {
		bubble.Test(t, func(t *testing.T) {
			store := ill(t)
			b := setUp(t, store, hangs())
			b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Millisecond }))
			b.engine.Close()
			e, err := Open(t.Context(), store, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			synctest.Wait()
			store.mu.Lock()
			store.read, store.reads = tc.err, math.MaxInt
			store.mu.Unlock()
			var lines bytes.Buffer
			c := b.Config
			done := false
			c.Log, c.Recovered = slog.New(slog.NewTextHandler(&lines, nil)), func(int) { done = true }
			defer e.Register(c).Unregister()
			time.Sleep(20 * retryMax)
			synctest.Wait()
			store.mu.Lock()
			store.reads = 0
			store.mu.Unlock()
			said := strings.Contains(lines.String(), "aip store verify") && strings.Contains(lines.String(), "task=t1")
			if done != tc.leaves || said != tc.leaves {
				t.Errorf("%v: it is left %t, and the log says so %t:\n%s", tc.err, done, said, &lines)
			}
		})
	}
}

// TestAuthorizationAfterARestart: a task is resumed though it awaits input, if its agent goes on by itself.
func TestAuthorizationAfterARestart(t *testing.T) {
	for _, open := range []bool{true, false} {
		bubble.Test(t, func(t *testing.T) {
			store := memory(t)
			waits := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				if yield(agent.Report{State: task.AwaitingInput, SelfResuming: open, NativeState: "auth-required"}, nil) {
					<-ctx.Done()
				}
			}}
			b := setUp(t, store, waits)
			b.do(call(task.Start, "t1"))
			b.engine.Close()
			want := []task.State{task.Accepted, task.Working, task.AwaitingInput}
			if open {
				want = append(want, task.Working, task.AwaitingCompletion)
			}
			resumed := 0
			b = setUp(t, store, &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				resumed++
				yield(finished("logged in"), nil)
			}})
			synctest.Wait() // before anybody asks for the task
			if want := len(want) - 3; resumed != want/2 {
				t.Errorf("open %v: resumed %d times", open, resumed)
			}
			b.wantStates("t1", want...)
		})
	}
}

// TestPartnerThatComesBack: turns not picked up before their Partner went away are picked up when it is registered
// again.
func TestPartnerThatComesBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := ill(t)
		b := setUp(t, store, hangs())
		b.do(call(task.Start, "t1"))
		b.engine.Close()

		fake := &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			yield(finished("x"), nil)
		}}
		engine, err := Open(t.Context(), store, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		synctest.Wait()
		store.mu.Lock()
		store.read, store.reads = replay.ErrUnavailable, 1
		store.mu.Unlock()
		config := b.Config
		config.Agent = fake
		gone := engine.Register(config)
		synctest.Wait()
		gone.Unregister()
		time.Sleep(time.Minute)
		back := engine.Register(config)
		defer back.Unregister()
		synctest.Wait()
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	})
}

// TestRecoveryScansOnce: however many Partners are registered, the store is asked once for the unfinished turns of an
// earlier process, and once more when it was reopened; the turns of each Partner are resumed.
func TestRecoveryScansOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := ill(t)
		names := []string{"agent", "another", "a third"}
		before := setUp(t, store, hangs())
		for _, name := range names {
			c := before.Config
			c.Name = name
			p := before.engine.Register(c)
			if _, err := p.Do(t.Context(), leader, call(task.Start, "t1",
				func(c *Request) { c.Terms.Response = 1 })); err != nil {
				t.Fatal(err)
			}
			p.Unregister()
		}
		before.engine.Close()

		store.dues = 0
		engine, err := Open(t.Context(), store, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		resumed := make(map[string]int)
		var mu sync.Mutex
		for _, name := range names {
			c := before.Config
			c.Name, c.Agent = name, &script{resume: func(ctx context.Context, _ *agent.Turn, _ func(agent.Report, error) bool) {
				mu.Lock()
				resumed[name]++
				mu.Unlock()
				<-ctx.Done()
			}}
			defer engine.Register(c).Unregister()
		}
		synctest.Wait()
		if want := map[string]int{"agent": 1, "another": 1, "a third": 1}; !cmp.Equal(want, resumed) {
			t.Errorf("resumed: %v", resumed)
		}
		if store.dues != 1 {
			t.Errorf("the store was asked %d times for unfinished tasks", store.dues)
		}
		store.heal(true)
		synctest.Wait()
		if store.dues != 2 {
			t.Errorf("after it was reopened, the store was asked %d times for unfinished tasks", store.dues)
		}
	})
}
