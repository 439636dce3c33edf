// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Watcher is told of the tasks that somebody outside wants to hear of. Its methods may be called by any number of
// goroutines at once, but for one log by one at a time.
type Watcher interface {
	// Watches reports whether a task that is about to be started is watched. A task that exists becomes watched
	// by Partner.Watch.
	Watches(ctx context.Context, log string) (bool, error)
	// Tell tells of changes of a watched task's state, in order, once they are stored and before the next command
	// is obeyed. It must not wait for anybody outside. ctx carries the trace of what caused them.
	Tell(ctx context.Context, log string, changes []task.Change)
}

// At is where a task stands.
type At struct {
	Seq    uint64 // of its last event; 0 where it has none, or does not exist
	Exists bool
	Ended  bool
}

// Watch calls f with where a Leader's task stands, and with the name of its log, while nothing can happen to the
// task, and has the engine's Watcher told of whatever happens to it from then on. The task need not exist.
func (p *Partner) Watch(ctx context.Context, leader, taskID string, f func(log string, at At) error) error {
	return p.look(ctx, leader, taskID, true, f)
}

// Look is Watch without the watching.
func (p *Partner) Look(ctx context.Context, leader, taskID string, f func(log string, at At) error) error {
	return p.look(ctx, leader, taskID, false, f)
}

func (p *Partner) look(ctx context.Context, leader, taskID string, watch bool, f func(log string, at At) error) error {
	lv := p.engine.acquire(logName(p.Name, leader, taskID))
	defer lv.release()
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if err := lv.load(ctx); err != nil {
		return err
	}
	status := &lv.fold.Task.Status
	at := At{Seq: lv.head.last, Exists: lv.exists, Ended: status.State.Terminal()}
	if watch && at.Exists && !at.Ended && !lv.note.Watched {
		// First this, then f: a mark that means nothing does no harm, a watcher that is told nothing would.
		lv.note.Watched = true
		a := replay.Append{Log: lv.log, Expect: lv.head.last, Note: lv.note.encode(), Wake: lv.wake(status.State, status.ChangedAt)}
		if err := lv.append(ctx, &a); err != nil {
			return err
		}
	}
	return f(lv.log, at)
}
