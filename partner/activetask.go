// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// activeTask is a task in memory while it is in use. There is one for each log, so its mutex makes the engine the only
// writer of the log.
type activeTask struct {
	engine *Engine
	log    string
	entry  *keylock.Entry[activeTask] // of Engine.active, while the task is in use

	working atomic.Pointer[run] // the run of an unsettled turn, for readers not allowed to wait for mu

	mu       lockorder.Mutex[lockorder.Task]
	writer   replay.Writer // of the log; nil before it is needed
	loaded   bool
	exists   bool      // the task has been started; its start may still be pending
	logState logState  // the state of the log in the store
	fold     task.Fold // the events of the log, folded
	meta     metadata
	encoded  encodedMetadata // meta, as it was when it was last needed
	listings listings        // likewise
	run      *run            // the turn under way in this process
	cancels
	lastTime time.Time // of the last event; the next is later

	size   int64       // about the bytes of the task in memory
	memory limit.Lease // counts them
	leased bool        // memory is in use

	idle     bool  // not loaded, but the content loaded before is kept: see idleTasks
	idleSize int64 // about its bytes as an idle task
}

// logState is a writer's knowledge of the log it appends to; see replay.Head.
type logState struct {
	revision uint64 // of the log; 0 while there is none
	last     uint64 // number of the last record
	kept     int    // records kept
	bytes    int64  // size of the records kept
	lost     uint64 // records lost with power that followers may have read
	cut      bool   // replay.Head.Cut: the agent's acts since are unknown
	held     held   // the pinned part of the log, not trimmed
	metadata []byte // activeTask.meta as it is stored
}

// load reads the task from the store, unless it is loaded already. tk.mu is held.
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
	head, snapshot, records, err := tk.stored().Load(ctx)
	if errors.Is(err, replay.ErrNotFound) {
		tk.loaded = true
		return nil
	}
	if err != nil {
		return StoreError(err, "the store cannot be read")
	}
	fold, err := foldAll(head, snapshot, records, tk.partner().maxSaid())
	if err != nil {
		return damaged(err)
	}
	if err := json.Unmarshal(head.Metadata, &tk.meta); err != nil {
		return damaged(err)
	}
	tk.fold = fold
	tk.logState = logState{
		revision: head.Revision, last: head.Last, kept: len(records), bytes: head.Bytes, lost: head.Lost, cut: head.Cut,
		metadata: head.Metadata,
	}
	tk.lastTime = lastTimeOf(tk.fold.Task())
	tk.exists, tk.loaded = true, true
	tk.engine.states.see(tk.log, tk.fold.Status().State)
	tk.size = int64(len(snapshot)) + head.Bytes
	if tk.meta.Pending != nil {
		tk.size += tk.meta.Pending.Size()
	}
	tk.lease().Take(tk.size)
	return nil
}

// stored returns the log in the store. tk.mu is held.
func (tk *activeTask) stored() replay.Writer {
	if tk.writer == nil {
		tk.writer = replay.Write(tk.engine.store, tk.log)
	}
	return tk.writer
}

// update loads the task, and calls f. f decides by the present task, and may append. After a conflict, it does both
// again (replay.RetryConflict). tk.mu is held.
func (tk *activeTask) update(ctx context.Context, f func() error) error {
	return replay.RetryConflict(func() error {
		if err := tk.load(ctx); err != nil {
			return err
		}
		return f()
	})
}

// errDamaged marks the error of an undecodable log: to read it again does not help.
var errDamaged = errors.New("partner: a damaged log")

func damaged(err error) error {
	return task.Errorf(task.Internal, "the task's log is damaged").WithCause(fmt.Errorf("%w: %w", errDamaged, err))
}

// foldAll folds a log as the store returned it. maxSaid is as in task.Fold.
func foldAll(head replay.Head, snapshot []byte, records []replay.Record, maxSaid int64) (task.Fold, error) {
	fold := task.Fold{MaxSaid: maxSaid}
	if snapshot != nil {
		if err := applyRecord(&fold, replay.Record{Seq: head.First - 1, Data: snapshot}); err != nil {
			return fold, err
		}
	}
	for _, r := range records {
		if err := applyRecord(&fold, r); err != nil {
			return fold, err
		}
	}
	return fold, nil
}

// applyRecord adds the event of a record to a fold.
func applyRecord(fold *task.Fold, r replay.Record) error {
	ev, err := task.DecodeEvent(r.Data)
	if err != nil {
		return err
	}
	ev.Seq = r.Seq
	fold.Apply(ev)
	return nil
}

// lastTimeOf returns the latest time in a task.
func lastTimeOf(t *task.Task) time.Time {
	last := t.Status.ChangedAt
	for i := range t.StatusHistory {
		if at := t.StatusHistory[i].ChangedAt; at.After(last) {
			last = at
		}
	}
	return last
}

// invalidate makes the next load read the task from the store again. tk.mu is held.
func (tk *activeTask) invalidate() {
	tk.loaded, tk.exists, tk.fold, tk.meta, tk.logState, tk.size = false, false, task.Fold{}, metadata{}, logState{}, 0
	tk.encoded, tk.listings = encodedMetadata{}, listings{}
	tk.idle, tk.idleSize = false, 0
	tk.memory.Take(0)
}

// dueAt returns the time of the next look at a task that is in a state since a time: the end of its Leader's time, or,
// while its agent works on it, the next opening of the store.
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

// partner returns the Partner of the task: the one that runs its turn, or the one registered last under its name; nil
// if none is registered.
func (tk *activeTask) partner() *Partner {
	if tk.run != nil {
		return tk.run.partner
	}
	name, _, _ := logname.Split(tk.log)
	return tk.engine.current(name)
}

// leader returns the key by which the task's Leader is counted, together with the others of this key.
func (tk *activeTask) leader() string {
	_, leader, _ := logname.Split(tk.log)
	return limit.Key(leader)
}

// caller returns the task's Leader as its command shows it, or as it is kept with the task if there is no command, or
// an operator's. tk.mu is held.
func (tk *activeTask) caller(c *Request) agent.Caller {
	_, leader, _ := logname.Split(tk.log)
	if c == nil || c.Operator {
		return agent.Caller{Leader: leader, Proof: tk.meta.Proof, Subject: tk.meta.Subject}
	}
	return agent.Caller{Leader: leader, Proof: c.Proof, Subject: c.Subject}
}

// logger returns a logger with the task, its Leader and its agent in its lines. It is the logger of the present
// configuration, because an earlier one may be closed.
func (tk *activeTask) logger() *slog.Logger {
	name, leader, id := logname.Split(tk.log)
	l := tk.engine.logger()
	if p := tk.engine.current(name); p != nil {
		l = p.Log
	} else if tk.run != nil {
		l = tk.run.partner.Log
	}
	if l == nil {
		l = slog.Default()
	}
	return l.With("task", id, "leader", leader)
}

// traced returns a context for a log line about the task: with the trace of its start, unless it has one of its own.
// tk.mu is held.
func (tk *activeTask) traced(ctx context.Context) context.Context {
	if tk.meta.Trace == (traceID{}) || trace.SpanContextFromContext(ctx).HasTraceID() {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, trace.SpanContext{}.WithTraceID(trace.TraceID(tk.meta.Trace)))
}

// snapshot returns the task as it is now, without its histories. It shares slices with the fold; the fold never changes
// their elements.
func (tk *activeTask) snapshot() task.Task {
	t := *tk.fold.Task()
	t.MessageHistory, t.StatusHistory = nil, nil
	return t
}

// acquire returns the activeTask of a log. The caller must release it.
func (e *Engine) acquire(log string) *activeTask { return e.active.Acquire(log).Value }

// release ends one use of the task. After the last one, it is idle.
func (tk *activeTask) release() {
	if tk.entry.Release() {
		tk.memory.Release()
		if tk.writer != nil {
			tk.writer.Close()
			tk.writer = nil
		}
		tk.engine.process.idle.put(tk)
	}
}
