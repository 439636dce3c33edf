// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// live is a task that somebody is at work on. There is one of it for each log, so its mutex is what makes the
// engine the log's only writer.
type activeTask struct {
	engine *Engine
	log    string

	mu       sync.Mutex
	loaded   bool
	exists   bool      // the task has been started, told or not
	logState logState  // what the store holds
	fold     task.Fold // what it amounts to
	meta     metadata
	run      *run // the turn under way in this process
	cancels
	lastTime time.Time // of the last event; the next is later

	size   int64       // about how many bytes the task takes in memory
	memory quota.Lease // counts them
	leased bool        // memory is in use

	idle     bool  // not loaded, but what was loaded is kept: see idleTasks
	idleSize int64 // about how many bytes it takes as an idle task
}

// log is what a writer must know of the log that it appends to.
type logState struct {
	last  uint64
	kept  int
	bytes int64
	lost  uint64 // records that may have been followed and then lost with the power; see replay.Head
	// metadata is activeTask.meta as it is stored.
	metadata []byte
}

// load reads the task from the store, once. tk.mu is held.
func (tk *activeTask) load(ctx context.Context) error {
	if tk.loaded {
		return nil
	}
	if tk.idle {
		head, err := tk.head(ctx)
		if err != nil {
			return err
		}
		if tk.reuse(&head); tk.loaded {
			return nil
		}
	}
	head, snapshot, records, err := tk.engine.store.Load(ctx, tk.log)
	if errors.Is(err, replay.ErrNotFound) {
		tk.loaded = true
		return nil
	}
	if err != nil {
		return StoreError(err, "the store cannot be read")
	}
	fold, err := foldAll(head, snapshot, records)
	if err != nil {
		return damaged(err)
	}
	if err := json.Unmarshal(head.Metadata, &tk.meta); err != nil {
		return damaged(err)
	}
	tk.fold = fold
	tk.logState = logState{last: head.Last, kept: len(records), bytes: head.Bytes, lost: head.Lost, metadata: head.Metadata}
	tk.lastTime = lastTimeOf(&fold.Task)
	tk.exists, tk.loaded = true, true
	tk.size = int64(len(snapshot)) + head.Bytes
	if tk.meta.Pending != nil {
		tk.size += tk.meta.Pending.Size()
	}
	tk.lease().Take(tk.size)
	return nil
}

// errDamaged marks the error of a log that cannot be read, however often it is tried.
var errDamaged = errors.New("partner: a damaged log")

func damaged(err error) error {
	return task.Errorf(task.Internal, "the task's log is damaged").WithCause(fmt.Errorf("%w: %w", errDamaged, err))
}

// foldAll folds a log as the store returned it.
func foldAll(head replay.Head, snapshot []byte, records []replay.Record) (task.Fold, error) {
	var fold task.Fold
	if snapshot != nil {
		ev, err := task.DecodeEvent(snapshot)
		if err != nil {
			return fold, err
		}
		ev.Seq = head.First - 1
		fold.Apply(ev)
	}
	for _, r := range records {
		ev, err := task.DecodeEvent(r.Data)
		if err != nil {
			return fold, err
		}
		ev.Seq = r.Seq
		fold.Apply(ev)
	}
	return fold, nil
}

func lastTimeOf(t *task.Task) time.Time {
	last := t.Status.ChangedAt
	for i := range t.StatusHistory {
		if at := t.StatusHistory[i].ChangedAt; at.After(last) {
			last = at
		}
	}
	return last
}

// forget has the task read from the store again before anything else is done with it. tk.mu is held.
func (tk *activeTask) invalidate() {
	tk.loaded, tk.exists, tk.fold, tk.meta, tk.logState, tk.size = false, false, task.Fold{}, metadata{}, logState{}, 0
	tk.idle, tk.idleSize = false, 0
	tk.memory.Take(0)
}

// wake returns when a task in a state must be looked at, if nobody acts before.
func (tk *activeTask) dueAt(s task.State, since time.Time) time.Time {
	switch {
	case s.Terminal():
		return time.Time{}
	case s == task.AwaitingInput:
		return since.Add(tk.meta.Terms.AwaitingInput)
	case s == task.AwaitingCompletion:
		return since.Add(tk.meta.Terms.AwaitingCompletion)
	}
	return replay.Recover
}

// partner returns the Partner that the task is filed under: the one that runs it, or the present one.
func (tk *activeTask) partner() *Partner {
	if tk.run != nil {
		return tk.run.partner
	}
	name, _, _ := logname.Split(tk.log)
	return tk.engine.current(name)
}

// logger returns a logger whose lines name the task, its Leader and its agent. It is the one of the present
// configuration, since an earlier one's may be closed.
func (tk *activeTask) logger() *slog.Logger {
	name, leader, id := logname.Split(tk.log)
	l := slog.Default()
	if p := tk.engine.current(name); p != nil {
		l = p.Log
	} else if tk.run != nil {
		l = tk.run.partner.Log
	}
	return l.With("task", id, "leader", leader, "agent", name)
}

// snapshot returns the task as it is now, without its histories. The slices are shared with the fold, which
// never changes what it has given out.
func (tk *activeTask) snapshot() task.Task {
	t := tk.fold.Task
	t.MessageHistory, t.StatusHistory = nil, nil
	return t
}

// acquire returns the one live of a log, which the caller must release.
func (e *Engine) acquire(log string) *activeTask { return e.active.Acquire(log) }

func (tk *activeTask) release() {
	if tk.engine.active.Release(tk.log) {
		tk.memory.Release()
		tk.engine.idle.put(tk)
	}
}
