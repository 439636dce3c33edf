// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestCancelRaces: a cancel refused by the agent because the task ends at the same moment is answered with the task as
// it ended, and every end is in the log.
func TestCancelRaces(t *testing.T) {
	type run = func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool)
	no := task.Errorf(task.TaskNotCancelable, "the agent refuses: it has ended")
	canceled := agent.Report{State: task.Canceled, NativeState: "canceled"}
	for _, tc := range []struct {
		name    string
		cancels int
		// the agent's part: answer answers the n-th cancel, n seconds long; run and resume continue when the first cancel
		// comes
		answer   func(n int) error
		run      run
		resume   run
		want     []task.State
		commands []task.Command
	}{
		{"three at once", 3, func(n int) error {
			if n > 1 {
				return no
			}
			bubble.Pass(5 * time.Second)
			return nil
		}, nil, nil, []task.State{task.Accepted, task.Working, task.Canceled}, []task.Command{task.Start, task.Cancel}},
		{"the agent cancels, and refuses", 1, func(int) error { bubble.Pass(time.Millisecond); return no },
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) { yield(canceled, nil) }, nil,
			[]task.State{task.Accepted, task.Working, task.Canceled}, []task.Command{task.Start, task.Cancel}},
		{"the agent cancels, and drops the connection", 1,
			func(int) error { return task.Errorf(task.InvalidAgentResponse, "the connection to the agent broke") },
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) { yield(canceled, nil) }, nil,
			[]task.State{task.Accepted, task.Working, task.Canceled}, []task.Command{task.Start, task.Cancel}},
		{"the agent cancels by ending its stream, which it might have done at the end", 1,
			func(int) error { bubble.Pass(time.Millisecond); return nil },
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{State: task.AwaitingCompletion, Presumed: true}, nil)
			}, nil,
			[]task.State{task.Accepted, task.Working, task.Canceled}, []task.Command{task.Start, task.Cancel}},
		{"the agent refuses, and its run breaks off", 1, func(int) error { bubble.Pass(time.Millisecond); return no },
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent went away"))
			}, nil,
			[]task.State{task.Accepted, task.Working, task.Failed}, []task.Command{task.Start}},
		{"the task has failed, and the run has not asked for it yet", 1, func(int) error { return no }, nil,
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{State: task.Failed, NativeState: "failed"}, nil)
			},
			[]task.State{task.Accepted, task.Working, task.Failed}, []task.Command{task.Start}},
		{"the task is canceled, and the run has not asked for it yet", 2, func(int) error { return no }, nil,
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) { yield(canceled, nil) },
			[]task.State{task.Accepted, task.Working, task.Canceled}, []task.Command{task.Start, task.Cancel}},
		{"the agent takes its time to say how the task has ended", 8, func(int) error { return no }, nil,
			func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				bubble.Pass(3 * time.Second)
				yield(agent.Report{State: task.Failed, NativeState: "failed"}, nil)
			},
			[]task.State{task.Accepted, task.Working, task.Failed}, []task.Command{task.Start}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				hanging := hangs()
				asked := make(chan struct{})
				if tc.run != nil {
					hanging.run = func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
						<-asked
						tc.run(ctx, turn, yield)
					}
				}
				if tc.resume != nil {
					hanging.resume = tc.resume
				}
				var n atomic.Int32
				hanging.cancel = func(context.Context, *agent.Turn) (agent.Report, error) {
					now := n.Add(1)
					if now == 1 {
						close(asked)
					}
					return agent.Report{State: task.Canceled}, tc.answer(int(now))
				}
				b := setUp(t, memory(t), hanging)
				b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Millisecond }))
				stream, err := b.Stream(t.Context(), leader, call(task.ReStream, "t1"))
				if err != nil {
					t.Fatal(err)
				}
				want := tc.want[len(tc.want)-1]
				var group sync.WaitGroup
				for range tc.cancels {
					group.Go(func() {
						got, err := b.Do(t.Context(), leader, call(task.Cancel, "t1"))
						if err != nil || got.Task.Status.State != want {
							t.Errorf("cancel answered %q, %v, want %q", got.Task.Status.State, err, want)
						}
					})
				}
				group.Wait()
				b.wantStates("t1", tc.want...)
				if diff := cmp.Diff(tc.commands, commands(b.do(call(task.Get, "t1")))); diff != "" {
					t.Errorf("messageHistory (-want +got):\n%s", diff)
				}
				if t.Failed() {
					return // the stream may have no end
				}
				var last task.Event
				for rec, err := range b.follow(t.Context(), &stream) {
					if err != nil {
						t.Fatal(err)
					}
					if last, err = task.DecodeEvent(rec.Data); err != nil {
						t.Fatal(err)
					}
				}
				if last.Status == nil || last.Status.State != want {
					t.Errorf("the stream ends with %+v", last)
				}
			})
		})
	}
}

// TestCancelMeetsAnotherTurn: a continue accepted while the agent is asked to cancel begins another turn, and the agent
// has ended the task by that when it refuses. The cancel is answered when that turn has been read.
func TestCancelMeetsAnotherTurn(t *testing.T) {
	for _, open := range []bool{false, true} { // whether the run of the turn before waits for an agent free to go on
		t.Run(fmt.Sprintf("open is %t", open), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s, turns := hangs(), 0
				asked, refused := make(chan struct{}), make(chan struct{})
				s.run = func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					if turns++; turns == 1 {
						yield(agent.Report{State: task.AwaitingInput, Revision: "1", SelfResuming: open}, nil)
						if open {
							<-ctx.Done()
						}
						return
					}
					<-refused
					bubble.Pass(time.Millisecond)
					yield(agent.Report{State: task.Failed, Revision: "2"}, nil)
				}
				s.cancel = func(context.Context, *agent.Turn) (agent.Report, error) {
					close(asked)
					bubble.Pass(time.Second)
					close(refused)
					return agent.Report{}, task.Errorf(task.TaskNotCancelable, "the agent refuses: it has ended")
				}
				b := setUp(t, memory(t), s)
				b.do(call(task.Start, "t1"))
				go func() {
					<-asked
					b.do(call(task.Continue, "t1"))
				}()
				got, err := b.Do(t.Context(), leader, call(task.Cancel, "t1"))
				if err != nil || got.Task.Status.State != task.Failed {
					t.Errorf("the cancel is answered with %q, %v", got.Task.Status.State, err)
				}
				b.wantStates("t1", task.Accepted, task.Working, task.AwaitingInput, task.Working, task.Failed)
			})
		})
	}
}

// TestCancelIsSentToTheAgentOfTheTurn: Partners of one name share their tasks, and only the agent of the one with the
// begun turn can cancel it.
func TestCancelIsSentToTheAgentOfTheTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		asked := func(name string, all *[]string) *script {
			s := hangs()
			s.cancel = func(context.Context, *agent.Turn) (agent.Report, error) {
				*all = append(*all, name)
				return agent.Report{State: task.Canceled}, nil
			}
			return s
		}
		var got []string
		b := setUp(t, memory(t), asked("first", &got))
		c := b.Config
		c.Agent = asked("second", &got)
		second := b.engine.Register(c)
		defer second.Unregister()
		b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Millisecond }))
		end, err := second.Do(t.Context(), leader, call(task.Cancel, "t1"))
		if err != nil || end.Task.Status.State != task.Canceled {
			t.Errorf("cancel is answered with %q, %v", end.Task.Status.State, err)
		}
		if diff := cmp.Diff([]string{"first"}, got); diff != "" {
			t.Errorf("the agents that are asked (-want +got):\n%s", diff)
		}
	})
}

// TestNothingFollowsTheEnd: the agent may report the end of a turn both to a run and to a cancel. Later reports of the
// run do not begin the turn again.
func TestNothingFollowsTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), hangs())
		b.do(call(task.Start, "t1"))
		tk := b.engine.acquire(b.LogOf(leader, "t1"))
		defer tk.release()
		piece := agent.Report{Chunks: []task.Chunk{{Product: finished("late").Products[0], Append: true}}}
		for i, rep := range []agent.Report{finished("x"), piece, finished("y"), {State: task.Working}} {
			if rested, err := tk.handleReport(t.Context(), tk.run, rep, nil); !rested || err != nil {
				t.Errorf("report %d: rested is %v, %v", i, rested, err)
			}
		}
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
		if diff := cmp.Diff(finished("x").Products, b.do(call(task.Get, "t1")).Products); diff != "" {
			t.Errorf("products (-want +got):\n%s", diff)
		}
	})
}
