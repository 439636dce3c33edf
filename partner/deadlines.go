// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Deadlines are kept in the store: every write has the time of the next look at its log (replay.Append.DueAt). So they
// survive a restart, and a waiting task needs no timer.

// concurrency is the number of deadlines executed, or tasks recovered, at a time.
const concurrency = 16

// keepDeadlines ends the waiting of tasks after their time, until the engine closes.
func (e *Engine) keepDeadlines() {
	for e.deadlines.Wait(e.base) {
		// When the store cannot be read, it is scanned again soon.
		_, _ = e.deadlines.Scan(e.base, concurrency, e.timeOut)
	}
}

// timeOut ends a task by rows 11 and 15 of the state table, if it still waits for its Leader. After an error it is
// called again.
func (e *Engine) timeOut(due replay.DueLog, now time.Time) error {
	tk := e.acquire(due.Log)
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	err := tk.update(e.base, func() error { return tk.timeOut(e.base, now) })
	if err != nil && task.KindOf(err) != task.StoreUnavailable { // such a store has logged it itself
		tk.logger().ErrorContext(tk.traced(e.base), "a deadline cannot be executed", "error", err)
	}
	return err
}

// timeOut is Engine.timeOut for the task as it is now. tk.mu is held.
func (tk *activeTask) timeOut(ctx context.Context, now time.Time) error {
	status := tk.fold.Status()
	at := tk.dueAt(status.State, status.ChangedAt)
	if !tk.exists || at.IsZero() || at.Equal(replay.Recover) || at.After(now) {
		return nil
	}
	b := tk.batch()
	end, why := task.Completed, "completed: the Leader did not answer in time (awaitingCompletionTimeout)"
	if status.State == task.AwaitingInput {
		end, why = task.Canceled, "canceled: no input came in time (awaitingInputTimeout)"
	}
	b.move(end, []task.DataItem{task.Text(why)}, nil)
	if err := b.write(ctx); err != nil {
		return err
	}
	if tk.run != nil {
		tk.run.stop()
	}
	return nil
}
