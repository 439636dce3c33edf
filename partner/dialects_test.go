// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// The needs of callers in other dialects than AIP: errors for commands ignored by AIP, tasks completed by themselves,
// agents going on by themselves, lists.

func TestAutoComplete(t *testing.T) {
	fake := &completed{script: answers("hello"), completions: make(chan string, 1)}
	b := setUp(t, memory(t), fake)
	got := b.do(call(task.Start, "t1", func(c *Request) { c.AutoComplete = true }))
	if got.Status.State != task.Completed || len(got.Products) != 1 {
		t.Errorf("start answered %+v", got)
	}
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion, task.Completed)
	if id := <-fake.completions; id == "" {
		t.Error("the agent was not informed which task is completed")
	}
}

// completed is an agent awaiting the Leader's word.
type completed struct {
	*script
	completions chan string
}

func (c *completed) Complete(_ context.Context, t *agent.Turn) error {
	c.completions <- t.Ref.Task
	return nil
}

func TestStrict(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "t1", func(c *Request) { c.AutoComplete = true }))
	strict := func(c *Request) { c.Strict = true }
	b.want(call(task.Cancel, "t1", strict), task.TaskNotCancelable)
	b.want(call(task.Continue, "t1", strict), task.UnsupportedOperation)
	b.want(call(task.Continue, "t2", strict), task.TaskNotFound)
	if got := b.do(call(task.Continue, "t1")); got.Status.State != task.Completed {
		t.Errorf("what is not strict answered %s", got.Status.State)
	}
}

func TestEither(t *testing.T) {
	fake := answers("hello")
	b := setUp(t, memory(t), fake)
	either := func(c *Request) { c.StartOrContinue = true }
	b.do(call(task.Start, "t1", either))
	b.do(call(task.Start, "t1", either, func(c *Request) { c.Message.ID = "second" }))
	if n := fake.turnCount(); n != 2 || fake.turns[1].From != task.AwaitingCompletion ||
		fake.turns[1].Message.Command != task.Continue {
		t.Errorf("%d turns: %+v", n, fake.turns)
	}
}

func TestSelfResumingAgent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		open := agent.Report{State: task.AwaitingInput, NativeState: "auth-required", SelfResuming: true,
			Items: []task.DataItem{task.Text("log in")}}
		fake := &script{run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
			if turn.From == task.AwaitingInput { // the caller said something after all
				yield(finished("said"), nil)
				return
			}
			if !yield(open, nil) {
				return
			}
			select {
			case <-time.After(10 * time.Minute):
				yield(finished("logged in"), nil)
			case <-ctx.Done():
				yield(agent.Report{}, ctx.Err())
			}
		}}
		b := setUp(t, memory(t), fake)
		start := func(id string) {
			t.Helper()
			begun := time.Now()
			if got := b.do(call(task.Start, id)); got.Status.State != task.AwaitingInput || time.Since(begun) != 0 {
				t.Errorf("start answered %s after %v", got.Status.State, time.Since(begun))
			}
		}
		start("waits")
		start("is informed")
		start("is canceled")
		if got := b.do(call(task.Continue, "is informed")); got.Status.State != task.AwaitingCompletion ||
			got.Products[0].DataItems[0].Text != "said" {
			t.Errorf("continue answered %+v", got)
		}
		b.do(call(task.Cancel, "is canceled"))
		bubble.Pass(11 * time.Minute)
		b.wantStates("waits", task.Accepted, task.Working, task.AwaitingInput, task.Working, task.AwaitingCompletion)
		b.wantStates("is informed", task.Accepted, task.Working, task.AwaitingInput, task.Working, task.AwaitingCompletion)
		b.wantStates("is canceled", task.Accepted, task.Working, task.AwaitingInput, task.Canceled)
	})
}

// TestSelfResumingAgentIsNotWaitedFor: the deadline of a task awaiting input ends the watching, too.
func TestSelfResumingAgentIsNotWaitedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		b := setUp(t, memory(t), &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			if yield(agent.Report{State: task.AwaitingInput, SelfResuming: true}, nil) {
				<-ctx.Done()
				close(stopped)
			}
		}})
		b.do(call(task.Start, "t1"))
		bubble.Pass(terms.AwaitingInput + time.Second)
		<-stopped
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingInput, task.Canceled)
	})
}

func TestSnapshotBeginsWhereTheTaskIs(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "t1"))
	s, err := b.Stream(t.Context(), leader, call(task.ReStream, "t1", func(c *Request) { c.Snapshot = true }))
	if err != nil {
		t.Fatal(err)
	}
	if s.Task.Status.State != task.AwaitingCompletion || len(s.Task.Products) != 1 || s.After != 4 {
		t.Errorf("the stream begins after event %d with %+v", s.After, s.Task)
	}
	b.do(call(task.Complete, "t1"))
	var seqs []uint64
	for rec, err := range b.follow(t.Context(), &s) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, rec.Seq)
	}
	if diff := cmp.Diff([]uint64{5}, seqs); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestList(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), answers("hello"))
		want := make([]string, 0, 25)
		for i := range 25 {
			id := fmt.Sprintf("t%02d", i)
			b.do(call(task.Start, id, func(c *Request) {
				if i%5 == 0 {
					c.Message.SessionID = "another"
				}
			}))
			want = append([]string{id}, want...) // the last changed first
			bubble.Pass(time.Second)
		}
		if _, err := b.Do(t.Context(), "another leader", call(task.Start, "t99")); err != nil {
			t.Fatal(err)
		}
		middle := time.Now().Add(-12 * time.Second)
		b.do(call(task.Complete, "t03"))
		want = append([]string{"t03"}, append(want[:21:21], want[22:]...)...)

		list := func(l task.List) (ids []string, pages int) {
			t.Helper()
			for {
				page, err := b.List(t.Context(), leader, &l, nil)
				if err != nil {
					t.Fatal(err)
				}
				pages++
				for i := range page.Tasks {
					ids = append(ids, page.Tasks[i].ID)
					if (len(page.Tasks[i].Products) > 0) != l.Products {
						t.Errorf("%s has %d products", page.Tasks[i].ID, len(page.Tasks[i].Products))
					}
				}
				if l.Token = page.Next; l.Token == "" {
					return ids, pages
				}
			}
		}
		for _, size := range []int{0, 1, 7, 24, 25, 26} {
			got, pages := list(task.List{Size: size, Products: size == 7})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("pages of %d (-want +got):\n%s", size, diff)
			}
			if size > 0 && pages != (25+size-1)/size {
				t.Errorf("%d pages of %d", pages, size)
			}
		}
		for name, c := range map[string]struct {
			list task.List
			n    int
		}{
			"a state":   {task.List{States: []task.State{task.Completed}}, 1},
			"two":       {task.List{States: []task.State{task.Completed, task.AwaitingCompletion}}, 25},
			"no state":  {task.List{States: []task.State{}}, 0},
			"a session": {task.List{SessionID: "another"}, 5},
			"a time":    {task.List{After: middle}, 13},
			"none":      {task.List{SessionID: "none"}, 0},
		} {
			if got, _ := list(c.list); len(got) != c.n {
				t.Errorf("%s: %d tasks, want %d: %v", name, len(got), c.n, got)
			}
		}
		for _, token := range []string{"x", "!!", "bm90IGEgdG9rZW4"} {
			if _, err := b.List(t.Context(), leader, &task.List{Token: token}, nil); task.KindOf(err) != task.InvalidParams {
				t.Errorf("the token %q: %v", token, err)
			}
		}
	})
}

// witness is a Watcher with a memory.
type witness struct {
	mu       sync.Mutex
	hooks    map[string]bool
	notified map[string][]task.State
	last     *task.Task // as it was with the last one
}

func (w *witness) Watches(_ context.Context, log string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hooks[log], nil
}

func (w *witness) Notify(_ context.Context, log string, changes []task.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range changes {
		w.notified[log] = append(w.notified[log], c.Task.Status.State)
		w.last = c.Task
	}
}

func TestWatch(t *testing.T) {
	store := memory(t)
	w := &witness{hooks: make(map[string]bool), notified: make(map[string][]task.State)}
	b := setUpWith(t, store, answers("hello"), Options{Watcher: w})
	before, during := b.LogOf(leader, "before"), b.LogOf(leader, "during")

	watch := func(id string, want task.Position) {
		t.Helper()
		if err := b.Watch(t.Context(), leader, id, func(log string, at task.Position) error {
			w.hooks[log] = true
			if diff := cmp.Diff(want, at); diff != "" || log != b.LogOf(leader, id) {
				t.Errorf("%q (-want +got):\n%s", log, diff)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	watch("before", task.Position{})
	b.do(call(task.Start, "before"))
	b.do(call(task.Start, "during"))
	b.do(call(task.Start, "never"))
	watch("during", task.Position{Seq: 4, Exists: true})
	for _, id := range []string{"before", "during", "never"} {
		b.do(call(task.Complete, id))
	}
	watch("before", task.Position{Seq: 5, Exists: true, Ended: true})
	if diff := cmp.Diff(map[string][]task.State{
		before: {task.Accepted, task.Working, task.AwaitingCompletion, task.Completed},
		during: {task.Completed},
	}, w.notified); diff != "" {
		t.Errorf("notified (-want +got):\n%s", diff)
	}
	if leaderOf, err := LeaderOf(t.Context(), b.store, b.Name, "never", anybody); err != nil || leaderOf != leader {
		t.Errorf("the task belongs to %q, %v", leaderOf, err)
	}
	if leaderOf, err := LeaderOf(t.Context(), b.store, b.Name, "none", anybody); err != nil || leaderOf != Anyone {
		t.Errorf("no task belongs to %q, %v", leaderOf, err)
	}
	other := func(l string) bool { return l != leader }
	if leaderOf, err := LeaderOf(t.Context(), b.store, b.Name, "never", other); err != nil ||
		leaderOf != Anyone {
		t.Errorf("the task of a Leader who may not be meant belongs to %q, %v", leaderOf, err)
	}
}
