// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// draining says whether a process starts no new tasks, before it is to be stopped.
type draining struct {
	since atomic.Pointer[time.Time] // nil while new tasks are started
}

// Drain has all engines refuse new tasks from now on, by an error of kind LimitExceeded with the limit "drain".
// Existing tasks continue: they take all commands. Drain changes nothing if it was called before.
func (p *Process) Drain() {
	now := time.Now()
	p.draining.since.CompareAndSwap(nil, &now)
}

// EndDrain has the engines start new tasks again.
func (p *Process) EndDrain() { p.draining.since.Store(nil) }

// Draining returns since when new tasks are refused; the zero time if they are not.
func (p *Process) Draining() time.Time {
	if since := p.draining.since.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

// running returns the number of turns in work at their agents now.
func (e *Engine) running() int { return e.count(func(*run) bool { return true }) }

// Unresumable returns the number of turns in work at agents now that would be lost if another process took the shard
// over: their agents have no means to resume them. It waits for nothing.
func (e *Engine) Unresumable() int {
	return e.count(func(r *run) bool {
		a, says := r.partner.Agent.(Resumer)
		return says && !a.CanResume()
	})
}

// count returns the number of turns of a kind in work at agents now. It waits for no task: the lock of one may be held
// for as long as the store of its shard has no leader.
func (e *Engine) count(is func(*run) bool) (n int) {
	for _, tk := range e.active.Used() {
		if r := tk.working.Load(); r != nil && is(r) {
			n++
		}
	}
	return n
}

// refusal returns the error of a start while new tasks are refused; nil if they are not.
func (d *draining) refusal() error {
	if d.since.Load() == nil {
		return nil
	}
	return task.Errorf(task.LimitExceeded, "the gateway is about to be stopped for maintenance; start the task later").
		WithData("limit", "drain").WithData("max", 0)
}
