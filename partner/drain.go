// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// draining says whether an engine starts no new tasks, before it is to be stopped.
type draining struct {
	since atomic.Pointer[time.Time] // nil while new tasks are started
}

// Drain has the engine refuse new tasks from now on, by an error of kind LimitExceeded whose limit is "drain". The
// tasks that it has continue: they take all commands. Drain changes nothing if it was called before.
func (e *Engine) Drain() {
	now := e.wall()
	e.draining.since.CompareAndSwap(nil, &now)
}

// EndDrain has the engine start new tasks again.
func (e *Engine) EndDrain() { e.draining.since.Store(nil) }

// Draining returns since when the engine refuses new tasks; the zero time if it does not.
func (e *Engine) Draining() time.Time {
	if since := e.draining.since.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

// Running returns how many turns of tasks their agents work on now.
func (e *Engine) Running() (n int) {
	for _, tk := range e.active.Used() {
		tk.mu.Lock()
		if tk.run != nil && !tk.run.settled.happened {
			n++
		}
		tk.mu.Unlock()
	}
	return n
}

// refusal returns the error of a start while the engine drains; nil if it does not.
func (d *draining) refusal() error {
	if d.since.Load() == nil {
		return nil
	}
	return task.Errorf(task.LimitExceeded, "the gateway is about to be stopped for maintenance; start the task later").
		WithData("limit", "drain").WithData("max", 0)
}
