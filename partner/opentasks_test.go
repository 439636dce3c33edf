// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

func TestTasksPerLeader(t *testing.T) {
	store := memory(t)
	two := func(c *Config) { c.MaxTasks = 2 }
	b := setUp(t, store, answers("x"), two)
	b.do(call(task.Start, "t1"))
	b.do(call(task.Start, "t2"))
	b.want(call(task.Start, "t3"), task.LimitExceeded)
	b.want(call(task.Get, "t3"), task.TaskNotFound)
	b.do(call(task.Start, "t1")) // repeated, not new
	b.do(call(task.Complete, "t1"))
	b.do(call(task.Start, "t3"))

	b.engine.Close()
	b = setUp(t, store, answers("x"), two)
	b.want(call(task.Start, "t4"), task.LimitExceeded)
	b.do(call(task.Cancel, "t2"))
	b.do(call(task.Start, "t4"))
}

// TestTasksOfUnverified proves that Leaders without a certificate have the limit of one together, and still tasks of
// their own.
func TestTasksOfUnverified(t *testing.T) {
	store := memory(t)
	two := func(c *Config) { c.MaxTasks = 2 }
	b := setUp(t, store, answers("x"), two)
	do := func(leader string, cmd task.Command) task.Kind {
		t.Helper()
		got, err := b.Do(t.Context(), leader, call(cmd, "t1"))
		if err == nil {
			if got.ID != "t1" {
				t.Errorf("%s: got task %q", leader, got.ID)
			}
			return none
		}
		return task.KindOf(err)
	}
	want := func(leader string, cmd task.Command, kind task.Kind) {
		t.Helper()
		if got := do(leader, cmd); got != kind {
			t.Errorf("%s of %s: got %v, want %v", cmd, leader, got, kind)
		}
	}
	want("unverified:a", task.Start, none)
	want("unverified:b", task.Start, none)
	want("unverified:c", task.Start, task.LimitExceeded)
	want("unverified:c", task.Get, task.TaskNotFound)
	want("verified", task.Start, none)

	b.engine.Close()
	b = setUp(t, store, answers("x"), two)
	want("unverified:c", task.Start, task.LimitExceeded)
	want("unverified:b", task.Complete, none)
	want("unverified:c", task.Start, none)
}
