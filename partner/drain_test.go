// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestDrain: while the engine drains, only new tasks are refused.
func TestDrain(t *testing.T) {
	b := setUp(t, memory(t), answers("x"), func(c *Config) { c.MaxTasks = 2 })
	b.do(call(task.Start, "t1"))
	b.engine.process.Drain()
	since := b.engine.process.Draining()
	for range 3 {
		b.engine.process.Drain()
		_, err := b.Do(t.Context(), leader, call(task.Start, "t2"))
		var e *task.Error
		if !errors.As(err, &e) || e.Kind != task.LimitExceeded {
			t.Fatalf("a new task: %v", err)
		}
		if diff := cmp.Diff(map[string]any{"limit": "drain", "max": 0}, e.Data); diff != "" {
			t.Errorf("the data of the error (-want +got):\n%s", diff)
		}
	}
	if since.IsZero() || !b.engine.process.Draining().Equal(since) {
		t.Errorf("the engine drains since %v, and then since %v", since, b.engine.process.Draining())
	}
	b.do(call(task.Start, "t1")) // repeated
	b.do(call(task.Continue, "t1"))
	b.do(call(task.Complete, "t1"))
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion, task.Working, task.AwaitingCompletion,
		task.Completed)
	b.want(call(task.Get, "t2"), task.TaskNotFound)
	b.engine.process.EndDrain()
	if !b.engine.process.Draining().IsZero() {
		t.Error("the engine drains after the end of it")
	}
	b.do(call(task.Start, "t2"))
}

// TestRunning: turns are counted while their agents work on them, and not while they wait for the Leader. To count them
// waits for no task.
func TestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := hangs()
		b := setUp(t, memory(t), hanging)
		for _, id := range []string{"a", "b"} {
			b.do(call(task.Start, id, func(c *Request) { c.Terms.Response = time.Millisecond }))
		}
		if n := b.engine.running(); n != 2 {
			t.Errorf("%d turns are running", n)
		}
		held := b.engine.acquire(b.LogOf(leader, "b"))
		held.mu.Lock() // as by an append waiting for the store
		if n := b.engine.running(); n != 2 {
			t.Errorf("%d turns are running while the lock of a task is held", n)
		}
		held.mu.Unlock()
		held.release()
		b.do(call(task.Cancel, "a"))
		synctest.Wait()
		if n := b.engine.running(); n != 1 {
			t.Errorf("%d turns are running after a cancel", n)
		}
	})
}
