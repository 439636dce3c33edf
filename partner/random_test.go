// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestAnyOrderOfCommandsIsLegal throws commands and agent moods at tasks and checks, after every step, for a legal path
// of the history through the table, rising times, and answers the same as the stored task.
func TestAnyOrderOfCommandsIsLegal(t *testing.T) {
	engine, inline := func(s *script) Agent { return byEngine{s} }, func(s *script) Agent { return inlined{s} }
	t.Run("engine", func(t *testing.T) { anyOrderIsLegal(t, engine, memory) })
	t.Run("inline", func(t *testing.T) { anyOrderIsLegal(t, inline, memory) })
	other := func(t *testing.T) replay.Store { return rivaled(t) }
	t.Run("engine, with another writer", func(t *testing.T) { anyOrderIsLegal(t, engine, other) })
	t.Run("inline, with another writer", func(t *testing.T) { anyOrderIsLegal(t, inline, other) })
}

func anyOrderIsLegal(t *testing.T, wrap func(*script) Agent, open func(*testing.T) replay.Store) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	bubble.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
		everything := []task.State{task.None, task.Accepted, task.Working, task.AwaitingInput, task.AwaitingCompletion,
			task.Canceled, task.Failed, task.Rejected}
		moody := func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			for range 1 + pick(4) {
				select {
				case <-ctx.Done():
					yield(agent.Report{}, task.Errorf(task.Internal, "stopped"))
					return
				case <-time.After(time.Duration(pick(3000)) * time.Millisecond):
				}
				rep := agent.Report{State: everything[pick(len(everything))], NativeState: "said"}
				switch pick(4) {
				case 0:
					rep.Items = []task.DataItem{task.Text(fmt.Sprint("news ", pick(100)))}
				case 1:
					rep.Chunks = []task.Chunk{{Product: task.Product{ID: fmt.Sprint("p", pick(3)),
						DataItems: []task.DataItem{task.Text("x")}}, Append: pick(2) == 0}}
				case 2:
					rep.Full, rep.Products = true, []task.Product{{ID: "p0",
						DataItems: []task.DataItem{task.Text(fmt.Sprint(pick(9)))}}}
				}
				if !yield(rep, nil) {
					return
				}
			}
			if pick(2) == 0 {
				yield(agent.Report{}, task.Errorf(task.Kind(pick(18)), "broke"))
			}
		}
		fake := &script{run: moody, resume: moody, cancel: func(context.Context, *agent.Turn) (agent.Report, error) {
			if pick(3) == 0 {
				return agent.Report{}, task.Errorf(task.Kind(pick(18)), "no")
			}
			return agent.Report{State: everything[pick(len(everything))]}, nil
		}}
		store := open(t)
		b := setUp(t, store, wrap(fake), func(c *Config) { c.MaxEvents = 40; c.MaxTasks = 0 })
		var group sync.WaitGroup
		for worker := range 4 {
			group.Go(func() {
				for i := range 200 {
					id := fmt.Sprint("t", pick(1+i/10))
					cmd := []task.Command{task.Start, task.Start, task.Get, task.Continue, task.Complete, task.Cancel}[pick(6)]
					_, err := b.Do(t.Context(), leader, call(cmd, id, func(c *Request) {
						c.Message.ID = fmt.Sprint("m", pick(1000)) // of one id, all are the same message
						c.Message.DataItems = []task.DataItem{task.Text("please")}
						c.Terms.Response = time.Duration(1+pick(2000)) * time.Millisecond
					}))
					if kind := task.KindOf(err); err != nil && kind != task.TaskNotFound && kind != task.TaskNotCancelable {
						t.Errorf("worker %d: %s: %v", worker, cmd, err)
					}
					if got, err := b.Do(t.Context(), leader, call(task.Get, id)); err == nil {
						legal(t, got.Task)
					}
				}
			})
		}
		group.Wait()
		b.wantStateCounts()
		bubble.Pass(time.Minute)
		b.wantStateCounts()
		for i := range 20 {
			id := fmt.Sprint("t", i)
			shown, err := b.Do(t.Context(), leader, call(task.Get, id))
			if task.KindOf(err) == task.TaskNotFound && err != nil {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			head, snapshot, records, err := store.Load(t.Context(), logname.New("agent", leader, id))
			if err != nil {
				t.Fatal(err)
			}
			fold, err := foldAll(head, snapshot, records, 0)
			if err != nil {
				t.Fatal(err)
			}
			if shown.Last != head.Last || shown.After != head.Last || shown.New || shown.Log != b.LogOf(leader, id) {
				t.Errorf("the position of the answer is %d, %d in %q; the log has %d events", shown.After, shown.Last,
					shown.Log, head.Last)
			}
			if diff := cmp.Diff(shown.Task, *fold.Task()); diff != "" {
				t.Errorf("the answer and the log of %s differ (-answer +log):\n%s", id, diff)
			}
		}
	})
}

// legal checks a task's history: it must be a path through the table, with rising times, to its state.
func legal(t *testing.T, got task.Task) {
	t.Helper()
	from := task.None
	var last time.Time
	for _, s := range got.StatusHistory {
		if !task.CanMove(from, s.State) {
			t.Fatalf("the history goes from %q to %q: %v", from, s.State, states(got))
		}
		if !s.ChangedAt.After(last) {
			t.Fatalf("the times do not rise: %v", got.StatusHistory)
		}
		from, last = s.State, s.ChangedAt
	}
	if from != got.Status.State {
		t.Fatalf("the history ends in %q, the task is %q", from, got.Status.State)
	}
}
