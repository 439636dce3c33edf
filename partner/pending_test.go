// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// taken is the report of an agent that has accepted a task and has done nothing yet.
func taken(name string) []agent.Report {
	return []agent.Report{
		{State: task.Accepted, NativeState: "submitted", Ref: &agent.Ref{Task: name, Session: "c"}},
		{State: task.Working, NativeState: "working"},
	}
}

// TestRejectionAfterTaking: an agent may accept a task before it rejects it. While no caller has seen the task, it was
// never accepted; a caller that follows has seen it.
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
				for _, err := range s.Follow(t.Context(), nil) {
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

// TestNameOfAnUnseenTask: the agent's name of a task that no caller has seen is known after a crash, so that it is
// asked for and not started again.
func TestNameOfAnUnseenTask(t *testing.T) {
	store := memory(t)
	synctest.Test(t, func(t *testing.T) {
		first := setUp(t, store, &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			for _, rep := range taken("its own") {
				if !yield(rep, nil) {
					return
				}
			}
			<-ctx.Done()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := first.Do(ctx, leader, call(task.Start, "t1")); ctx.Err() == nil {
			t.Errorf("the start was answered: %v", err)
		}
		first.engine.Close()

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

// TestCancelOfWhatIsFinished: to some callers a task that awaits completion is completed.
func TestCancelOfWhatIsFinished(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "t1"))
	b.want(call(task.Cancel, "t1", func(c *Request) { c.Finished = true }), task.TaskNotCancelable)
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
		t.Errorf("for a Leader, the cancel is answered by %s", got.Status.State)
	}
}
