// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
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

func TestLifeOfATask(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	got := b.do(call(task.Start, "t1"))
	if got.Status.State != task.AwaitingCompletion || len(got.Products) != 1 || got.MessageHistory != nil ||
		got.StatusHistory != nil {
		t.Errorf("start answered %+v", got)
	}
	got = b.do(call(task.Continue, "t1"))
	if got.Status.State != task.AwaitingCompletion {
		t.Errorf("continue answered %s", got.Status.State)
	}
	got = b.do(call(task.Complete, "t1"))
	if got.Status.State != task.Completed {
		t.Errorf("complete answered %s", got.Status.State)
	}
	got = b.do(call(task.Get, "t1"))
	if diff := cmp.Diff([]task.State{task.Accepted, task.Working, task.AwaitingCompletion, task.Working,
		task.AwaitingCompletion, task.Completed}, states(got)); diff != "" {
		t.Errorf("statusHistory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]task.Command{task.Start, task.Continue, task.Complete}, commands(got)); diff != "" {
		t.Errorf("messageHistory (-want +got):\n%s", diff)
	}
	for i := 1; i < len(got.StatusHistory); i++ {
		if !got.StatusHistory[i].ChangedAt.After(got.StatusHistory[i-1].ChangedAt) {
			t.Errorf("the times do not rise: %v", got.StatusHistory)
		}
	}

	mid := got.StatusHistory[2].ChangedAt
	part := b.do(call(task.Get, "t1", func(c *Request) { c.StatesAfter = mid }))
	if diff := cmp.Diff([]task.State{task.Working, task.AwaitingCompletion, task.Completed}, states(part)); diff != "" {
		t.Errorf("statusHistory after %v (-want +got):\n%s", mid, diff)
	}
	part = b.do(call(task.Get, "t1", func(c *Request) { c.MessagesAfter = got.MessageHistory[3].SentAt }))
	if len(commands(part)) != 0 {
		t.Errorf("messages after the last one: %v", commands(part))
	}
}

func TestIgnoredCommandsChangeNothing(t *testing.T) {
	for _, state := range task.States() {
		for _, cmd := range []task.Command{task.Start, task.Continue, task.Complete, task.Cancel} {
			if task.Applies(cmd, state) {
				continue
			}
			t.Run(string(state)+"/"+string(cmd), func(t *testing.T) {
				b := setUp(t, memory(t), bringTo(state))
				reach(t, b, state)
				before := b.do(call(task.Get, "t1"))
				if before.Status.State != state {
					t.Fatalf("the task is %s, want %s", before.Status.State, state)
				}
				b.do(call(cmd, "t1"))
				if diff := cmp.Diff(before, b.do(call(task.Get, "t1"))); diff != "" {
					t.Errorf("%s in state %s changed the task (-before +after):\n%s", cmd, state, diff)
				}
			})
		}
	}
}

func TestHundredStartsRunOnce(t *testing.T) {
	gate := make(chan struct{})
	fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		<-gate
		yield(finished("once"), nil)
	}}
	b := setUp(t, memory(t), fake)
	var group sync.WaitGroup
	answered := make(chan task.State, 100)
	for range 100 {
		group.Go(func() {
			got, err := b.Do(t.Context(), leader, call(task.Start, "t1"))
			if err != nil {
				t.Error(err)
			}
			answered <- got.Task.Status.State
		})
	}
	for range 99 {
		if s := <-answered; s != task.Working {
			t.Errorf("a repeated start answered %s while the first was at work", s)
		}
	}
	close(gate)
	if s := <-answered; s != task.AwaitingCompletion {
		t.Errorf("the first start answered %s", s)
	}
	group.Wait()
	if n := fake.turnCount(); n != 1 {
		t.Errorf("the agent was asked %d times", n)
	}
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
}

func TestLeadersAreIsolated(t *testing.T) {
	fake := answers("mine")
	b := setUp(t, memory(t), fake)
	b.do(call(task.Start, "t1"))
	for _, cmd := range []task.Command{task.Get, task.Continue, task.Complete, task.Cancel, task.ReStream} {
		if _, err := b.Do(t.Context(), "other", call(cmd, "t1")); task.KindOf(err) != task.TaskNotFound || err == nil {
			t.Errorf("%s of another's task: %v", cmd, err)
		}
	}
	if _, err := b.Do(t.Context(), "other", call(task.Start, "t1")); err != nil {
		t.Error(err)
	}
	if n := fake.turnCount(); n != 2 || fake.turns[0].Ref == fake.turns[1].Ref {
		t.Errorf("two Leaders with the same taskId met at the agent: %+v", fake.turns)
	}
}

func TestResponseTimeoutAnswersAndTheRunContinues(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			time.Sleep(time.Minute)
			yield(finished("late"), nil)
		}}
		b := setUp(t, memory(t), fake)
		began := time.Now()
		got := b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = 5 * time.Second }))
		if got.Status.State != task.Working || time.Since(began) != 5*time.Second {
			t.Errorf("answered %s after %v", got.Status.State, time.Since(began))
		}
		time.Sleep(time.Minute)
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	})
}

func TestCallerLeavesAndTheRunContinues(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			select {
			case <-ctx.Done():
				yield(agent.Report{}, task.Errorf(task.Internal, "the connection was closed"))
			case <-time.After(time.Second):
				yield(finished("done"), nil)
			}
		}}
		b := setUp(t, memory(t), fake)
		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if _, err := b.Do(ctx, leader, call(task.Start, "t1")); err != context.DeadlineExceeded {
			t.Errorf("a caller that left got %v", err)
		}
		time.Sleep(2 * time.Second)
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	})
}

func TestAgentFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    *task.Error
		resume func(ctx context.Context, t *agent.Turn, yield func(agent.Report, error) bool)
		want   task.State
		says   string
	}{
		{"down", task.Errorf(task.AgentUnavailable, "the agent cannot be reached"), nil, task.Failed,
			"the agent cannot be reached"},
		{"nonsense", task.Errorf(task.InvalidAgentResponse, "the agent answered HTML"), nil, task.Failed,
			"the agent answered HTML"},
		{"cut, then done", task.Errorf(task.Internal, "cut"),
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(finished("after all"), nil)
			}, task.AwaitingCompletion, "ok"},
		{"cut, then lost", task.Errorf(task.Internal, "cut").WithCause(unanswered{}),
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{State: task.Working}, nil)
				yield(agent.Report{}, task.Errorf(task.AgentTimeout, "the agent has lost the task"))
			}, task.Failed, "the agent has lost the task"},
		{"an error, then lost", task.Errorf(task.Internal, "the agent failed: no quota"),
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{State: task.Working}, nil)
				yield(agent.Report{}, task.Errorf(task.AgentTimeout, "the agent has lost the task"))
			}, task.Failed, "the agent failed: no quota; the agent has lost the task"},
		{"cut, then truth", task.Errorf(task.Internal, "cut"),
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{State: task.Failed, Items: []task.DataItem{task.Text("agent broke")}}, nil)
			}, task.Failed, "agent broke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := &script{resume: c.resume, run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{}, c.err)
			}}
			b := setUp(t, memory(t), fake)
			got := b.do(call(task.Start, "t1"))
			if got.Status.State != c.want || len(got.Status.DataItems) != 1 || got.Status.DataItems[0].Text != c.says {
				t.Errorf("got %+v, want %s saying %q", got.Status, c.want, c.says)
			}
		})
	}
}

func TestRejectedOnlyBeforeAnAnswer(t *testing.T) {
	rejects := func() *script {
		return &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			time.Sleep(10 * time.Second)
			yield(agent.Report{State: task.Rejected, NativeState: "rejected", Items: []task.DataItem{task.Text("not mine")}},
				nil)
		}}
	}
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), rejects())
		b.do(call(task.Start, "t1"))
		b.wantStates("t1", task.Rejected)
	})
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), rejects())
		b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
		time.Sleep(time.Minute)
		b.wantStates("t1", task.Accepted, task.Working, task.Failed)
	})
}

func TestMaxProductsBytes(t *testing.T) {
	for _, c := range []struct {
		max  int64
		want task.State
	}{{5, task.AwaitingCompletion}, {4, task.Failed}, {0, task.AwaitingCompletion}} {
		b := setUp(t, memory(t), answers("12345"))
		got := b.do(call(task.Start, "t1", func(call *Request) { call.Terms.MaxProductsBytes = c.max }))
		if got.Status.State != c.want {
			t.Errorf("with a limit of %d, five bytes gave %s", c.max, got.Status.State)
		}
		if c.want == task.Failed && len(got.Status.DataItems) == 0 {
			t.Error("no reason given")
		}
	}
}

func TestCancel(t *testing.T) {
	refuses := func(context.Context, *agent.Turn) (agent.Report, error) {
		return agent.Report{}, task.Errorf(task.TaskNotCancelable, "not now")
	}
	unreachable := func(context.Context, *agent.Turn) (agent.Report, error) {
		return agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent cannot be reached")
	}
	short := func(c *Request) { c.Terms.Response = time.Millisecond }

	t.Run("while working", func(t *testing.T) {
		b := setUp(t, memory(t), hangs())
		b.do(call(task.Start, "t1", short))
		if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
			t.Errorf("cancel answered %s", got.Status.State)
		}
		b.wantStates("t1", task.Accepted, task.Working, task.Canceled)
		if diff := cmp.Diff([]task.Command{task.Start, task.Cancel}, commands(b.do(call(task.Get, "t1")))); diff != "" {
			t.Errorf("messageHistory (-want +got):\n%s", diff)
		}
	})
	t.Run("refused", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			fake := hangs()
			fake.cancel = refuses
			b := setUp(t, memory(t), fake)
			b.do(call(task.Start, "t1", short))
			b.want(call(task.Cancel, "t1"), task.TaskNotCancelable)
			b.wantStates("t1", task.Accepted, task.Working)
		})
	})
	t.Run("refused because it just ended", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			fake := &script{cancel: refuses, run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				time.Sleep(time.Second)
				yield(finished("x"), nil)
			}}
			b := setUp(t, memory(t), fake)
			b.do(call(task.Start, "t1", short))
			time.Sleep(900 * time.Millisecond)
			if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
				t.Errorf("cancel answered %s", got.Status.State)
			}
			b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion, task.Canceled)
		})
	})
	t.Run("agent unreachable", func(t *testing.T) {
		fake := hangs()
		fake.cancel = unreachable
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1", short))
		got := b.do(call(task.Cancel, "t1"))
		if got.Status.State != task.Canceled || len(got.Status.DataItems) != 1 {
			t.Errorf("cancel answered %+v", got.Status)
		}
	})
	t.Run("while awaiting input, refused", func(t *testing.T) {
		fake := bringTo(task.AwaitingInput)
		fake.cancel = refuses
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1"))
		if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
			t.Errorf("cancel answered %s", got.Status.State)
		}
	})
	t.Run("the agent reports it too", func(t *testing.T) {
		seen := make(chan struct{})
		fake := &script{
			run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				<-seen
				yield(agent.Report{State: task.Canceled, NativeState: "canceled"}, nil)
				seen <- struct{}{}
			},
			cancel: func(context.Context, *agent.Turn) (agent.Report, error) {
				seen <- struct{}{}
				<-seen
				return agent.Report{State: task.Canceled}, nil
			},
		}
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1", short))
		b.do(call(task.Cancel, "t1"))
		if diff := cmp.Diff([]task.Command{task.Start, task.Cancel}, commands(b.do(call(task.Get, "t1")))); diff != "" {
			t.Errorf("messageHistory (-want +got):\n%s", diff)
		}
	})
}

func TestRecovery(t *testing.T) {
	crash := func(t *testing.T, store replay.Store, seen bool) {
		b := setUp(t, store, hangs())
		if seen {
			b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Millisecond }))
		} else {
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			defer leave()
			if _, err := b.Do(ctx, leader, call(task.Start, "t1")); err != context.DeadlineExceeded {
				t.Fatal(err)
			}
		}
		b.engine.Close()
	}
	for _, seen := range []bool{false, true} {
		t.Run(fmt.Sprintf("the agent continued/seen=%v", seen), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := memory(t)
				crash(t, store, seen)
				fake := &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					yield(finished("kept going"), nil)
				}}
				b := setUp(t, store, fake)
				synctest.Wait()
				b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
				if fake.turnCount() != 0 {
					t.Error("the turn was sent again")
				}
			})
		})
	}
	t.Run("the agent forgot, and no caller had seen the task", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			store := memory(t)
			crash(t, store, false)
			fake := answers("again")
			b := setUp(t, store, fake)
			synctest.Wait()
			b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
			if fake.turnCount() != 1 || fake.turns[0].Message.DataItems[0].Text != "please start" {
				t.Errorf("the start was not made up for: %+v", fake.turns)
			}
		})
	})
	t.Run("the agent forgot", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			store := memory(t)
			crash(t, store, true)
			b := setUp(t, store, answers("never"))
			synctest.Wait()
			b.wantStates("t1", task.Accepted, task.Working, task.Failed)
		})
	})
	t.Run("the agent never took the continue", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			store := memory(t)
			first := answers("first")
			first.run = func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
				if turn.Message.Command == task.Continue {
					<-ctx.Done()
					yield(agent.Report{}, task.Errorf(task.Internal, "stopped"))
					return
				}
				rep := finished("first")
				rep.Revision = "completed 1"
				yield(rep, nil)
			}
			b := setUp(t, store, first)
			b.do(call(task.Start, "t1"))
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			defer leave()
			if _, err := b.Do(ctx, leader, call(task.Continue, "t1")); err != context.DeadlineExceeded {
				t.Fatal(err)
			}
			b.engine.Close()
			fake := answers("second")
			fake.resume = func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
				if turn.Revision != "completed 1" {
					t.Errorf("the agent is asked with the revision %q", turn.Revision)
				}
				yield(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent has not taken the message"))
			}
			b = setUp(t, store, fake)
			synctest.Wait()
			if fake.turnCount() != 1 || fake.turns[0].Message.Command != task.Continue {
				t.Errorf("the continue was not made up for: %+v", fake.turns)
			}
			b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion, task.Working, task.AwaitingCompletion)
		})
	})
	t.Run("no Partner is registered yet", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			store := memory(t)
			crash(t, store, true)
			b := setUp(t, store, answers("x"), func(c *Config) { c.Name = "another" })
			synctest.Wait()
			fake := &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(finished("x"), nil)
			}}
			c := b.Config
			c.Name, c.Agent = "agent", fake
			p := b.engine.Register(c)
			defer p.Unregister()
			synctest.Wait()
			got, err := p.Do(t.Context(), leader, call(task.Get, "t1"))
			if err != nil || got.Task.Status.State != task.AwaitingCompletion {
				t.Errorf("got %s, %v", got.Task.Status.State, err)
			}
		})
	})
}
