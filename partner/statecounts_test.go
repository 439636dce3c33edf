// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// unfinishedStates are the states of unfinished tasks.
var unfinishedStates = []task.State{
	task.None, task.Accepted, task.Working, task.AwaitingInput, task.AwaitingCompletion,
}

func (b *bench) stateCounts() map[task.State]int64 {
	counts := make(map[task.State]int64)
	for _, s := range unfinishedStates {
		if n := b.engine.InState(s); n > 0 {
			counts[s] = n
		}
	}
	return counts
}

// wantStateCounts compares the counts with the tasks of the store. It is called in a bubble.
func (b *bench) wantStateCounts() {
	b.t.Helper()
	synctest.Wait()
	want := make(map[task.State]int64)
	list, _, err := Engines{b.engine}.Tasks(b.t.Context(), TaskFilter{Limit: maxTaskPage, States: unfinishedStates})
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range list {
		want[list[i].State]++
	}
	if diff := cmp.Diff(want, b.stateCounts()); diff != "" {
		b.t.Errorf("tasks by state (-stored +counted):\n%s", diff)
	}
}

// TestTasksByState has tasks of an earlier engine count after a restart, each once, whatever happens to them first.
func TestTasksByState(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		asks := &script{run: func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
			if turn.Message.TaskID[0] == 'i' {
				yield(agent.Report{State: task.AwaitingInput, NativeState: "asks"}, nil)
				return
			}
			yield(finished("x"), nil)
		}}
		b := setUp(t, store, asks)
		for i := range 3 {
			b.do(call(task.Start, fmt.Sprint("i", i)))
			b.do(call(task.Start, fmt.Sprint("c", i)))
		}
		want := map[task.State]int64{task.AwaitingInput: 3, task.AwaitingCompletion: 3}
		if diff := cmp.Diff(want, b.stateCounts()); diff != "" {
			t.Errorf("before the restart (-want +got):\n%s", diff)
		}
		b.engine.Close()

		b = setUp(t, store, hangs())
		b.do(call(task.Complete, "c0")) // perhaps before it was counted
		b.do(call(task.Continue, "i0", func(c *Request) { c.Terms.Response = time.Millisecond }))
		b.wantStateCounts()
		b.engine.Close()

		// The tasks are counted while commands for them come. A second look at them changes nothing.
		slow := &slowDue{store, make(chan error)}
		b = setUp(t, slow, hangs())
		b.do(call(task.Complete, "c1"))
		b.do(call(task.Get, "i1"))
		slow.goOn <- nil
		b.wantStateCounts()
		b.engine.Register(b.Config).Unregister()
		b.wantStateCounts()
		b.do(call(task.Cancel, "i1"))
		b.wantStateCounts()
	})
}

// TestTasksByStateOfAFailingStore has appends fail, made or not made.
func TestTasksByStateOfAFailingStore(t *testing.T) {
	for seed := range uint64(8) {
		bubble.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			store := ill(t)
			b := setUp(t, store, answers("x"))
			synctest.Wait() // until the engine waits for the store to be reopened
			commands := []task.Command{task.Start, task.Start, task.Continue, task.Complete, task.Cancel, task.Get}
			for range 100 {
				fails := rnd.IntN(3) == 0
				if fails {
					store.ail(replay.ErrUnavailable, rnd.IntN(2) == 0)
				}
				// Many of the commands are refused. Only the counts matter: they must be those of the store.
				_, _ = b.Do(t.Context(), leader, call(commands[rnd.IntN(len(commands))], fmt.Sprint("t", rnd.IntN(30))))
				if fails {
					store.heal(true)
					time.Sleep(retryMax)
					b.wantStateCounts()
				}
			}
			b.wantStateCounts()
		})
	}
}
