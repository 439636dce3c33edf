// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Deadlines live in the store: every write says when its log must be looked at again. So they survive a
// restart, and a task that waits costs no memory.

// concurrency is how many deadlines, or recoveries, are worked on at a time.
const concurrency = 16

// keepDeadlines ends the waiting of tasks whose time has come, until the engine closes.
func (e *Engine) keepDeadlines() {
	for e.deadlines.Wait(e.base) {
		// When the store cannot be read, it is scanned again soon.
		_, _ = e.deadlines.Scan(e.base, concurrency, e.timeOut)
	}
}

// timeOut does what rows 11 and 15 of the table say, if the task still waits. With an error of the store it is to be called
// again.
func (e *Engine) timeOut(due replay.DueLog, now time.Time) error {
	tk := e.acquire(due.Log)
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if err := tk.load(e.base); err != nil {
		return tk.deadlineFailed(err)
	}
	status := &tk.fold.Task.Status
	if at := tk.dueAt(status.State, status.ChangedAt); !tk.exists || at.IsZero() || at.Equal(replay.Recover) || at.After(now) {
		return nil
	}
	b := tk.batch()
	if status.State == task.AwaitingInput {
		b.move(task.Canceled, []task.DataItem{task.Text("canceled: no input came in time (awaitingInputTimeout)")}, nil)
	} else {
		b.move(task.Completed, []task.DataItem{task.Text("completed: nobody objected in time (awaitingCompletionTimeout)")}, nil)
	}
	if err := b.write(e.base); err != nil {
		return tk.deadlineFailed(err)
	}
	if tk.run != nil {
		tk.run.stop()
	}
	return nil
}

// deadlineFailed logs an error of the store, unless the store is unavailable, which it says itself.
func (tk *activeTask) deadlineFailed(err error) error {
	if task.KindOf(err) != task.StoreUnavailable {
		tk.logger().Error("a deadline cannot be kept", "error", err)
	}
	return err
}
