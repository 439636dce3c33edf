// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Deadlines live in the store: every write says when its log must be looked at again. So they survive a
// restart, and a task that waits costs no memory.

const (
	// farAway is when the keeper looks again though nothing is due: a store may be written by another hand.
	longestWait = time.Hour
	// margin is how far back the keeper looks when nothing was left to do.
	margin = time.Minute
	// retryDeadline is how long the keeper waits after the store failed.
	retryDeadline = time.Second
	// atOnce is how many deadlines, or recoveries, are worked on at a time.
	concurrency = 16
)

var afterRestart = replay.Recover.Add(1)

// keepDeadlines ends the waiting of tasks whose time has come, until the engine closes.
func (e *Engine) keepDeadlines() {
	from := afterRestart
	for {
		stepped, ok := e.alarm.Wait(e.base.Done())
		if !ok {
			return
		}
		if stepped {
			from = afterRestart
		}
		began := e.wall()
		if e.expire(from) {
			// What was due has gone: to look there again would only cost the store. A margin, because a deadline
			// counts from a time that lies a little before it is written.
			from = began.Add(-margin)
		} else {
			from = afterRestart
		}
	}
}

// expire works off all that is due since a time. It reports whether all was done.
func (e *Engine) expire(from time.Time) bool {
	e.alarm.Begin()
	now := e.wall()
	next := now.Add(longestWait)
	var group sync.WaitGroup
	var failed atomic.Bool
	slots := make(chan struct{}, concurrency)
	for w, err := range e.store.Due(e.base, logname.Task, from, next) {
		if err != nil {
			failed.Store(true)
			next = now.Add(retryDeadline)
			break
		}
		if w.At.After(now) {
			next = w.At
			break
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if !e.timeOut(w.Log, now) {
				failed.Store(true)
			}
		})
	}
	group.Wait()
	e.alarm.End(next)
	return !failed.Load()
}

// timeOut does what rows 11 and 15 of the table say, if the task still waits. It reports false if the store
// would not have it.
func (e *Engine) timeOut(log string, now time.Time) bool {
	tk := e.acquire(log)
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if err := tk.load(e.base); err != nil {
		return e.retryTimeOut(tk, now, err)
	}
	status := &tk.fold.Task.Status
	if at := tk.dueAt(status.State, status.ChangedAt); !tk.exists || at.IsZero() || at.Equal(replay.Recover) || at.After(now) {
		return true
	}
	b := tk.batch()
	if status.State == task.AwaitingInput {
		b.move(task.Canceled, []task.DataItem{task.Text("canceled: no input came in time (awaitingInputTimeout)")}, nil)
	} else {
		b.move(task.Completed, []task.DataItem{task.Text("completed: nobody objected in time (awaitingCompletionTimeout)")}, nil)
	}
	if err := b.write(e.base); err != nil {
		return e.retryTimeOut(tk, now, err)
	}
	if tk.run != nil {
		tk.run.stop()
	}
	return true
}

// miss plans another look at a deadline that the store did not let be kept. A store that is unavailable says so itself,
// and the engine looks again when it is reopened.
func (e *Engine) retryTimeOut(tk *activeTask, now time.Time, err error) (kept bool) {
	if task.KindOf(err) != task.StoreUnavailable {
		tk.logger().Error("a deadline cannot be kept", "error", err)
		e.alarm.At(now.Add(retryDeadline))
	}
	return false
}
