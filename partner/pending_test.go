// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// taken is the report of an agent after it has accepted a task and done nothing yet.
func taken(name string) []agent.Report {
	return []agent.Report{
		{State: task.Accepted, NativeState: "submitted", Ref: &agent.Ref{Task: name, Session: "c"}},
		{State: task.Working, NativeState: "working"},
	}
}

// TestRejectionAfterTaking: an agent may accept a task before it rejects it. While no caller has seen the task, it was
// never accepted; a following caller has seen it.
func TestRejectionAfterTaking(t *testing.T) {
	no := agent.Report{State: task.Rejected, NativeState: "rejected", Items: []task.DataItem{task.Text("not my job")}}
	for _, tc := range []struct {
		name   string
		before []agent.Report
		stream bool
		want   []task.State
	}{
		{"nothing was seen", taken("t"), false, []task.State{task.Rejected}},
		{"it was followed", taken("t"), true, []task.State{task.Accepted, task.Working, task.Failed}},
		{"it has said something", append(taken("t"),
			agent.Report{State: task.Working, NativeState: "working", Items: []task.DataItem{task.Text("hm")}}), false,
			[]task.State{task.Accepted, task.Working, task.Failed}},
		{"it has made something", append(taken("t"),
			agent.Report{Chunks: []task.Chunk{{Product: task.Product{ID: "p", DataItems: []task.DataItem{task.Text("x")}}}}}),
			false,
			[]task.State{task.Accepted, task.Working, task.Failed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := setUp(t, memory(t), &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				for _, rep := range append(tc.before[:len(tc.before):len(tc.before)], no) {
					if !yield(rep, nil) {
						return
					}
				}
			}})
			if tc.stream {
				s, err := b.Stream(t.Context(), leader, call(task.Start, "t1"))
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range b.follow(t.Context(), &s) {
					if err != nil {
						t.Fatal(err)
					}
				}
			} else {
				b.do(call(task.Start, "t1"))
			}
			b.wantStates("t1", tc.want...)
		})
	}
}

// TestNameOfAnUnseenTask: the agent's name of a task unseen by callers is known after a crash, so the task is asked for
// and not started again.
func TestNameOfAnUnseenTask(t *testing.T) {
	store := memory(t)
	bubble.Test(t, func(t *testing.T) {
		first := setUp(t, store, &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			for _, rep := range taken("its own") {
				if !yield(rep, nil) {
					return
				}
			}
			<-ctx.Done()
		}})
		first.startUnanswered()

		resumed := make(chan agent.Ref, 1)
		second := setUp(t, store, &script{resume: func(_ context.Context, turn *agent.Turn,
			yield func(agent.Report, error) bool) {
			resumed <- turn.Ref
			yield(finished("done"), nil)
		}})
		if diff := cmp.Diff(agent.Ref{Task: "its own", Session: "c"}, <-resumed); diff != "" {
			t.Errorf("what is asked for (-want +got):\n%s", diff)
		}
		synctest.Wait()
		second.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	})
}

// startUnanswered starts the task t1 for a caller leaving before it has an answer, and ends the process.
func (b *bench) startUnanswered() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
	defer cancel()
	if _, err := b.Do(ctx, leader, call(task.Start, "t1")); ctx.Err() == nil {
		b.t.Errorf("the start was answered: %v", err)
	}
	b.engine.Close()
}

// TestNamedTaskIsNotStartedAgain: a start answered by its agent is not sent again, also if no caller has seen the task
// and the agent does not know it after a crash.
func TestNamedTaskIsNotStartedAgain(t *testing.T) {
	for _, state := range []task.State{task.None, task.Accepted} {
		store := memory(t)
		bubble.Test(t, func(t *testing.T) {
			first := setUp(t, store, &script{run: func(ctx context.Context, _ *agent.Turn,
				yield func(agent.Report, error) bool) {
				yield(agent.Report{State: state, Ref: &agent.Ref{Task: "its own", Session: "c"}}, nil)
				<-ctx.Done()
			}})
			first.startUnanswered()

			at := answers("again")
			second := setUp(t, store, at)
			synctest.Wait()
			second.wantStates("t1", task.Accepted, task.Working, task.Failed)
			if n := at.turnCount(); n != 0 {
				t.Errorf("after %q, the agent was sent %d turns", state, n)
			}
		})
	}
}

// TestNameInAContinue: the agent's name of the task in a later turn is known after a crash, also if the report with the
// name changes nothing in a Leader's view.
func TestNameInAContinue(t *testing.T) {
	store := memory(t)
	bubble.Test(t, func(t *testing.T) {
		first := setUp(t, store, &script{run: func(ctx context.Context, turn *agent.Turn,
			yield func(agent.Report, error) bool) {
			if turn.Message.Command == task.Start {
				yield(finished("one"), nil)
				return
			}
			yield(agent.Report{State: task.Working, Ref: &agent.Ref{Task: "its second", Session: "c"}}, nil)
			<-ctx.Done()
		}})
		first.do(call(task.Start, "t1"))
		first.do(call(task.Continue, "t1", func(c *Request) { c.Terms.Response = time.Second }))
		first.engine.Close()

		resumed := make(chan agent.Ref, 1)
		setUp(t, store, &script{resume: func(_ context.Context, turn *agent.Turn,
			yield func(agent.Report, error) bool) {
			resumed <- turn.Ref
			yield(finished("two"), nil)
		}})
		if diff := cmp.Diff(agent.Ref{Task: "its second", Session: "c"}, <-resumed); diff != "" {
			t.Errorf("what is asked for (-want +got):\n%s", diff)
		}
		synctest.Wait()
	})
}

// TestWhoHasNamedAResumedTask: after a crash it is known whether the agent has named a started task, whatever the
// gateway's name for it is.
func TestWhoHasNamedAResumedTask(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"by its log":     func(*Request) {},
		"by its session": func(c *Request) { c.BySession = true },
		"by its caller":  func(c *Request) { c.AgentTask = c.Message.TaskID },
	} {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", named by the agent: ", named), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					store := memory(t)
					first := setUp(t, store, &script{run: func(ctx context.Context, _ *agent.Turn,
						yield func(agent.Report, error) bool) {
						if !named || yield(agent.Report{State: task.Accepted, Ref: &agent.Ref{Task: "its own"}}, nil) {
							<-ctx.Done()
						}
					}})
					first.do(call(task.Start, "t1", change, func(c *Request) { c.Terms.Response = time.Second }))
					first.engine.Close()

					resumed := make(chan bool, 1)
					setUp(t, store, &script{resume: func(_ context.Context, turn *agent.Turn,
						yield func(agent.Report, error) bool) {
						resumed <- turn.Named
						yield(finished("done"), nil)
					}})
					if got := <-resumed; got != named {
						t.Errorf("named is %t", got)
					}
					synctest.Wait()
				})
			})
		}
	}
}

// TestUnreported: a resumed start says whether the agent has reported anything of it, also if the report changes
// nothing in its Leader's view.
func TestUnreported(t *testing.T) {
	report := func(r agent.Report) []agent.Report { return []agent.Report{r} }
	for name, tc := range map[string]struct {
		before, after []agent.Report // the agent's reports before and after its Leader has seen the task
		want          bool
	}{
		"nothing":                {nil, nil, true},
		"working, before":        {report(agent.Report{State: task.Working}), nil, false},
		"working, after":         {nil, report(agent.Report{State: task.Working}), false},
		"accepted, after":        {nil, report(agent.Report{State: task.Accepted}), false},
		"a product, after":       {nil, report(agent.Report{Chunks: []task.Chunk{{Product: task.Product{ID: "p"}}}}), false},
		"how it is sent, after":  {nil, report(agent.Report{Delivery: agent.DeliverySending}), true},
		"how it is sent, before": {report(agent.Report{Delivery: agent.DeliverySending}), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := memory(t)
				seen := make(chan struct{})
				first := setUp(t, store, &script{run: func(ctx context.Context, _ *agent.Turn,
					yield func(agent.Report, error) bool) {
					for _, r := range tc.before {
						yield(r, nil)
					}
					<-seen
					for _, r := range tc.after {
						yield(r, nil)
					}
					<-ctx.Done()
				}})
				first.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
				close(seen)
				synctest.Wait()
				first.engine.Close()

				resumed := make(chan bool, 1)
				setUp(t, store, &script{resume: func(_ context.Context, turn *agent.Turn,
					yield func(agent.Report, error) bool) {
					resumed <- turn.Unreported
					yield(finished("done"), nil)
				}})
				if got := <-resumed; got != tc.want {
					t.Errorf("unreported is %t", got)
				}
				synctest.Wait()
			})
		})
	}
}

// keeper is an agent, seen to keep tasks, or not.
type keeper struct {
	*script
	keeps bool
}

func (k keeper) KeepsTasks() bool { return k.keeps }

// TestKept: a resumed turn says whether its agent had been seen to keep tasks when the turn began. If it is carried out
// after that, it reports its message as sent again.
func TestKept(t *testing.T) {
	for _, kept := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			store := memory(t)
			first := setUp(t, store, keeper{&script{run: func(ctx context.Context, _ *agent.Turn,
				yield func(agent.Report, error) bool) {
				<-ctx.Done()
			}}, kept})
			first.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
			first.engine.Close()

			var resumed, again agent.Turn
			second := setUp(t, store, &script{
				resume: func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
					resumed = *turn
					yield(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent has not received the message"))
				},
				run: func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
					again = *turn
					yield(finished("done"), nil)
				},
			})
			synctest.Wait()
			if resumed.Kept != kept || resumed.Repeated || again.Kept != kept || !again.Repeated {
				t.Errorf("kept %t: it is resumed as kept %t, repeated %t, and carried out as %t, %t",
					kept, resumed.Kept, resumed.Repeated, again.Kept, again.Repeated)
			}
			second.engine.Close()
		})
	}
}

// TestCancelOfWhatIsFinished: to some callers a task awaiting completion is completed.
func TestCancelOfWhatIsFinished(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "t1"))
	b.want(call(task.Cancel, "t1", func(c *Request) { c.Finished = true }), task.TaskNotCancelable)
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
		t.Errorf("for a Leader, the cancel is answered by %s", got.Status.State)
	}
}

// appends is a store with a memory of its appends.
type appends struct {
	replay.Store
	all []replay.Append
}

func (s *appends) Append(ctx context.Context, a replay.Append) error {
	s.all = append(s.all, a)
	return s.Store.Append(ctx, a)
}

// TestStartIsTwoAppends: a turn of one request costs two writes. The first may be lost with the power, since no caller
// depends on it; the second is durable before the caller is answered.
func TestStartIsTwoAppends(t *testing.T) {
	store := &appends{Store: memory(t)}
	b := setUp(t, store, inlined{answers("x")})
	store.all = nil
	b.do(call(task.Start, "t1"))
	if len(store.all) != 2 {
		t.Fatalf("%d writes", len(store.all))
	}
	intent, turn := store.all[0], store.all[1]
	if !intent.Intent || intent.Durable || len(intent.Records) != 0 || !intent.DueAt.Equal(replay.Recover) {
		t.Errorf("the first write is %+v", intent)
	}
	if turn.Intent || !turn.Durable || len(turn.Records) != 4 || !turn.DueAt.After(time.Now()) {
		t.Errorf("the second write is %+v", turn)
	}
}

// TestTentative: a caller shown a task as not yet in work at its agent does not keep the agent from rejecting it. The
// start is durable before its caller is answered.
func TestTentative(t *testing.T) {
	tentative := func(c *Request) { c.Tentative, c.Followed, c.Terms.Response = true, true, task.NoWait }
	no := agent.Report{State: task.Rejected, NativeState: "rejected", Items: []task.DataItem{task.Text("not my job")}}
	for _, tc := range []struct {
		name    string
		reports []agent.Report
		want    []task.State
	}{
		{"rejected after it was accepted", append(taken("t")[:1:1], no), []task.State{task.Rejected}},
		{"rejected after it was begun", append(taken("t"), no), []task.State{task.Accepted, task.Working, task.Failed}},
		{"finished", append(taken("t"), finished("x")),
			[]task.State{task.Accepted, task.Working, task.AwaitingCompletion}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := &appends{Store: memory(t)}
				next := make(chan agent.Report)
				b := setUp(t, store, &script{run: func(_ context.Context, _ *agent.Turn,
					yield func(agent.Report, error) bool) {
					for rep := range next {
						if !yield(rep, nil) {
							return
						}
					}
				}})
				show := func(command task.Command) {
					got := b.do(call(command, "t1", tentative))
					if got.ID != "t1" || got.Status.State != task.None || got.Status.ChangedAt.IsZero() {
						t.Errorf("%s shows %+v", command, got)
					}
				}
				show(task.Start)
				if first := store.all[0]; !first.Durable || first.Intent {
					t.Errorf("the start is not durable: %+v", first)
				}
				show(task.Get)
				show(task.Start)
				if s, err := b.Stream(t.Context(), leader, call(task.ReStream, "t1", tentative)); err != nil || s.After != 0 {
					t.Errorf("the events begin after %d: %v", s.After, err)
				}
				for _, rep := range tc.reports {
					next <- rep
					synctest.Wait()
					if rep.State == task.Accepted {
						show(task.Get)
					}
				}
				close(next)
				synctest.Wait()
				b.wantStates("t1", tc.want...)
				b.engine.Close()
			})
		})
	}
}

// TestRefusedBeforeItIsAccepted: a refused command, or one executed before, changes nothing: a task not accepted by its
// agent may still be rejected, and was never accepted.
func TestRefusedBeforeItIsAccepted(t *testing.T) {
	again := func(c *Request) { c.Message.ID = "msg-start" }
	for _, tc := range []struct {
		name   string
		change func(*Request)
		want   task.Kind
	}{
		{"a message that it takes not yet", func(*Request) {}, task.UnsupportedOperation},
		{"a message of another session", func(c *Request) { c.SameSession, c.Message.SessionID = true, "other" },
			task.InvalidParams},
		{"the id of the start with other content", again, task.InvalidParams},
		{"the message of the start again", func(c *Request) {
			again(c)
			c.Message.DataItems = call(task.Start, "").Message.DataItems
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				rejects := make(chan bool)
				b := setUp(t, memory(t), &script{run: func(_ context.Context, _ *agent.Turn,
					yield func(agent.Report, error) bool) {
					<-rejects
					yield(agent.Report{State: task.Rejected}, nil)
				}})
				tentative := func(c *Request) { c.Tentative, c.Strict, c.Terms.Response = true, true, task.NoWait }
				b.do(call(task.Start, "t1", tentative))
				_, err := b.Do(t.Context(), leader, call(task.Continue, "t1", tentative, tc.change))
				if got := task.KindOf(err); err == nil && tc.want != 0 || err != nil && got != tc.want {
					t.Errorf("it is answered with %v", err)
				}
				if got := b.do(call(task.Get, "t1", tentative)); got.Status.State != task.None {
					t.Errorf("the task is %s", got.Status.State)
				}
				rejects <- true
				synctest.Wait()
				b.wantStates("t1", task.Rejected)
			})
		})
	}
}
