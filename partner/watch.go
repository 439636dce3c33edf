// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Watcher is notified of the changes of watched tasks. Its methods may be called by any number of goroutines at once,
// but for one log by one at a time.
type Watcher interface {
	// Watches reports whether a task about to be started is watched. An existing task becomes watched by Partner.Watch.
	Watches(ctx context.Context, log string) (bool, error)
	// Notify receives changes of a watched task's state, in order, after they are appended to the task's log and before
	// the next command is executed. It must not wait for a receiver. ctx carries the trace of their cause.
	Notify(ctx context.Context, log string, changes []task.Change)
}

// Watch calls f with the name of the log of a Leader's task and with the position of the task, while nothing can happen
// to the task. The engine's Watcher is notified of all its changes from then on. The task need not exist.
func (p *Partner) Watch(ctx context.Context, leader, taskID string, f func(log string, at task.Position) error) error {
	memory := p.Memory.Lease(leader)
	defer memory.Release()
	reserve := func(ctx context.Context, n int64) error { return WaitForMemory(ctx, &memory, n, p.Memory.Patience) }
	tk, err := p.engine.lockWithMemory(ctx, logname.New(p.Name, leader, taskID), reserve, 0)
	if err != nil {
		return err
	}
	defer tk.release()
	defer tk.mu.Unlock()
	if err := tk.update(ctx, func() error { return tk.watch(ctx) }); err != nil {
		return err
	}
	return f(tk.log, tk.position())
}

// position returns the task's position in its log. tk.mu is held.
func (tk *activeTask) position() task.Position {
	return task.Position{Seq: tk.logState.last, Exists: tk.exists, Ended: tk.fold.Status().State.Terminal()}
}

// watch has the engine's Watcher notified of the changes of an existing task. It must be called before a webhook is
// set: a mark without a webhook does no harm, but a webhook without the mark would miss changes. tk.mu is held.
func (tk *activeTask) watch(ctx context.Context) error {
	if !tk.exists || tk.meta.Watched || tk.fold.Status().State.Terminal() {
		return nil
	}
	tk.meta.Watched = true
	status := tk.fold.Status()
	return tk.appendMetadata(tk.dueAt(status.State, status.ChangedAt), false)
}
