// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// growing is an agent with a product in pieces.
func growing() *script {
	return &script{run: func(_ context.Context, t *agent.Turn, yield func(agent.Report, error) bool) {
		for i := range 5 {
			piece := task.Product{ID: "p1", DataItems: []task.DataItem{task.Text(strings.Repeat("x", i+1))}}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{{Product: piece, Append: i > 0}}}, nil) {
				return
			}
		}
		yield(agent.Report{State: task.AwaitingCompletion, Revision: t.Message.ID, Items: []task.DataItem{task.Text("ok")}},
			nil)
	}}
}

// TestSettledTaskIsNotLoadedAgain: a request about a settled task costs one look-up of its log's head, and the task is
// the same as an engine reads for the first time.
func TestSettledTaskIsNotLoadedAgain(t *testing.T) {
	for name, reserve := range map[string]replay.Reserve{"bounded memory": func(context.Context,
		int64) error {
		return nil
	}, "unbounded memory": nil} {
		t.Run(name, inBubble(func(t *testing.T) {
			store := &counting{Store: memory(t)}
			b, fresh := setUp(t, store, growing()), func() *bench { return setUp(t, store.Store, growing()) }
			b.do(call(task.Start, "t1"))
			synctest.Wait()
			for _, command := range []task.Command{task.Get, task.Continue, task.Get, task.Complete, task.Get, task.Cancel} {
				var got task.Task
				n := store.during(func() {
					got = b.do(call(command, "t1", func(c *Request) { c.Histories, c.Reserve = true, reserve }))
				})
				synctest.Wait() // the turn lets go of the task
				if want := (reads{loads: 0, heads: 1}); n != want {
					t.Errorf("%s reads the store %+v, want %+v", command, n, want)
				}
				if diff := cmp.Diff(fresh().do(call(task.Get, "t1")), got, sameTimes); diff != "" {
					t.Errorf("%s (-stored +answer):\n%s", command, diff)
				}
			}
		}))
	}
}

// inBubble returns a test to run in a bubble of package synctest.
func inBubble(f func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) { bubble.Test(t, f) }
}

// sameTimes compares times as they are written.
var sameTimes = cmp.Comparer(func(a,
	b time.Time) bool {
	return a.Format(time.RFC3339Nano) == b.Format(time.RFC3339Nano)
})

// TestIdleTaskChangedElsewhere: another engine's writes to a task's log are seen, and not overwritten.
func TestIdleTaskChangedElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		b, other := setUp(t, store, answers("hello")), setUp(t, store, answers("hello again"))
		do := func(b *bench, c *Request) task.Task {
			got := b.do(c)
			synctest.Wait() // the turn lets go of the task
			return got
		}
		do(b, call(task.Start, "t1"))
		for i := range 3 {
			do(other, call(task.Continue, "t1", func(c *Request) { c.Message.ID = fmt.Sprint("other-", i) }))
			if diff := cmp.Diff(do(other, call(task.Get, "t1")), do(b, call(task.Get, "t1")), sameTimes); diff != "" {
				t.Errorf("(-other +ours):\n%s", diff)
			}
			do(b, call(task.Continue, "t1", func(c *Request) { c.Message.ID = fmt.Sprint("ours-", i) }))
		}
		do(other, call(task.Cancel, "t1"))
		got := do(b, call(task.Get, "t1"))
		if n := len(commands(got)); n != 8 || got.Status.State != task.Canceled {
			t.Errorf("after 8 commands, there are %d, and the task is %s", n, got.Status.State)
		}
	})
}

// TestIdleTaskIsDropped: a task is gone once the store has dropped its log, and may be started again.
func TestIdleTaskIsDropped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{Retention: time.Minute})
		defer store.Close()
		b := setUp(t, store, answers("hello"))
		b.do(call(task.Start, "t1"))
		b.do(call(task.Complete, "t1"))
		time.Sleep(time.Hour)
		b.want(call(task.Get, "t1"), task.TaskNotFound)
		if got := b.do(call(task.Start, "t1", func(c *Request) { c.Histories = true })); len(got.MessageHistory) != 1 {
			t.Errorf("the new task has %d messages", len(got.MessageHistory))
		}
	})
}

// TestIdleTaskAfterFailure: a failed write, stored nevertheless, is seen by the next command.
func TestIdleTaskAfterFailure(t *testing.T) {
	store := ill(t)
	b := setUp(t, store, answers("hello"))
	b.do(call(task.Start, "t1"))
	store.ail(replay.ErrUnavailable, true)
	b.want(call(task.Complete, "t1"), task.StoreUnavailable)
	store.heal(true)
	if got := b.do(call(task.Get, "t1")); got.Status.State != task.Completed {
		t.Errorf("the task is %s", got.Status.State)
	}
	store.mu.Lock()
	store.read, store.reads = errors.New("no"), 1
	store.mu.Unlock()
	if got := b.do(call(task.Get, "t1")); got.Status.State != task.Completed {
		t.Errorf("the task is %s", got.Status.State)
	}
}

// TestIdleTasksAreBounded: the memory of idle tasks is a share of the limit of a Partner, and those used last are kept.
func TestIdleTasksAreBounded(t *testing.T) {
	bubble.Test(t, testIdleTasksAreBounded)
}

func testIdleTasksAreBounded(t *testing.T) {
	const most = 1 << 20
	store := &counting{Store: memory(t)}
	limited := func(c *Config) {
		c.Memory = limit.Budget{Counter: new(limit.Counter), Limits: limit.Limits{Total: most, PerLeader: most}}
	}
	b := setUp(t, store, answers(strings.Repeat("x", 4<<10)), limited)
	idle := b.engine.process.idle
	check := func(max int64) {
		t.Helper()
		var sum int64
		for _, tk := range idle.tasks.Values() {
			sum += tk.idleSize
		}
		if idle.bytes != sum || sum > max || sum < max/2 {
			t.Errorf("idle tasks of %d bytes are counted as %d, the limit is %d", sum, idle.bytes, max)
		}
	}
	for i := range 100 {
		b.do(call(task.Start, fmt.Sprint("t", i)))
		synctest.Wait() // the turn lets go of the task
	}
	check(most / idleShare)
	for id, loads := range map[string]int64{"t99": 0, "t0": 1} {
		if n := store.during(func() { b.do(call(task.Get, id)) }); n.loads != loads {
			t.Errorf("%s was loaded %d times, want %d", id, n.loads, loads)
		}
	}
	if n := b.Memory.Counter.Total(); n != 0 {
		t.Errorf("idle tasks are counted as %d bytes that Leaders hold", n)
	}
	small := b.Config
	small.Memory.Limits.Total = most / 2
	b.Unregister()
	p := b.engine.Register(small)
	defer p.Unregister()
	check(most / 2 / idleShare)
}

// TestIdleLimitWhenAShardIsLost: the engine of a lost shard has no Partners any more, and leaves the tasks of other
// shards in memory.
func TestIdleLimitWhenAShardIsLost(t *testing.T) {
	const most = 1 << 20
	b := setUp(t, memory(t), answers("x"), func(c *Config) {
		c.Memory = limit.Budget{Counter: new(limit.Counter), Limits: limit.Limits{Total: most, PerLeader: most}}
	})
	idle := b.engine.process.idle
	lost, err := Open(t.Context(), memory(t), Options{Process: b.engine.process})
	if err != nil {
		t.Fatal(err)
	}
	lost.Register(b.Config).Unregister()
	lost.Close()
	if idle.max != most/idleShare {
		t.Errorf("idle tasks may take %d bytes, want %d", idle.max, most/idleShare)
	}
}

// TestSettledIsInMemory: the followers of a large settled task are shown it as its log has it, without reading the log;
// and so is a caller of get.
func TestSettledIsInMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &counting{Store: memory(t)}
		large := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			piece := task.Product{ID: "p1", DataItems: []task.DataItem{task.Text(strings.Repeat("x", limit.Free))}}
			_ = yield(agent.Report{State: task.Working, Chunks: []task.Chunk{{Product: piece}}}, nil) &&
				yield(agent.Report{State: task.AwaitingCompletion}, nil)
		}}
		b := setUp(t, store, large)
		b.do(call(task.Start, "t1"))
		synctest.Wait() // the turn lets go of the task
		p, log := b.Partner, b.LogOf(leader, "t1")
		at := task.Event{Seq: 4, Status: &task.Status{State: task.AwaitingCompletion}}
		reserve := func(context.Context, int64) error { return nil }
		want, err := TaskAt(t.Context(), store, log, &at, reserve)
		if err != nil {
			t.Fatal(err)
		}
		n := store.during(func() {
			for range 2 {
				got, ok := p.Settled(t.Context(), log, at.Seq)
				if diff := cmp.Diff(want, got, sameTimes); diff != "" || !ok {
					t.Errorf("in memory: %t (-log +memory):\n%s", ok, diff)
				}
			}
			if _, ok := p.Settled(t.Context(), log, at.Seq-1); ok {
				t.Error("the task is shown as it was before its last event")
			}
			if _, ok := p.Settled(t.Context(), log+"2", at.Seq); ok {
				t.Error("there is another task")
			}
			b.do(call(task.Get, "t1", func(c *Request) { c.Reserve = reserve }))
		})
		if n.loads != 0 {
			t.Errorf("the store is read %+v", n)
		}
	})
}
