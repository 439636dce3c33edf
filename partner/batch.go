// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// batch collects the events of one write. The task itself does not change before they are stored.
type batch struct {
	tk     *activeTask
	events []task.Event
	pieces pieces
	state  task.State // after the events
	since  time.Time  // when state was entered

	answers bool // the agent is answered when it is stored
}

// pieces are the pieces from:to of a report, as events of a batch.
type pieces struct {
	of       *task.Pieces
	from, to int
	behind   int // the number of batch.events before them
}

func (tk *activeTask) batch() *batch {
	now := tk.fold.Status()
	return &batch{tk: tk, state: now.State, since: now.ChangedAt}
}

// add adds an event.
func (b *batch) add(ev task.Event) {
	if b.events == nil { // it stays so if there are pieces only
		b.events = make([]task.Event, 0, 4)
	}
	b.events = append(b.events, ev)
}

// beginTask adds the first event of a task with a pending start, in state accepted or rejected.
func (b *batch) beginTask(state task.State, items []task.DataItem) {
	tk := b.tk
	m := tk.meta.Pending
	status := task.Status{State: state, ChangedAt: tk.nextTime(tk.meta.PendingAt), DataItems: items}
	b.state, b.since = state, status.ChangedAt
	b.add(task.Event{
		Task:  &task.Task{ID: m.TaskID, SessionID: m.SessionID, GroupID: m.GroupID, Status: status},
		Cause: m,
	})
	tk.meta.Pending, tk.meta.PendingAt, tk.meta.Session = nil, time.Time{}, m.SessionID
}

// move adds the events leading to a state by a legal path, and reports whether there is one.
func (b *batch) move(to task.State, items []task.DataItem, cause *task.Message) bool {
	path := task.Path(b.state, to)
	if path == nil {
		return false
	}
	now := b.tk.engine.wall()
	for i, s := range path {
		if s.Settled() {
			b.endProducts()
		}
		status := &task.Status{State: s, ChangedAt: b.tk.nextTime(now)}
		ev := task.Event{Status: status}
		if i == len(path)-1 {
			status.DataItems, ev.Cause = items, cause
		}
		b.add(ev)
		b.state, b.since = s, status.ChangedAt
	}
	return true
}

// said returns the agent's words with the present state, before the report at hand.
func (b *batch) said() []task.DataItem {
	if len(b.events) > 0 && b.events[len(b.events)-1].Task != nil {
		return b.events[len(b.events)-1].Task.Status.DataItems
	}
	return b.tk.fold.Status().DataItems
}

// addPieces adds some of the pieces of a report. It is called at most once.
func (b *batch) addPieces(of *task.Pieces, from, to int) {
	b.pieces = pieces{of, from, to, len(b.events)}
	for i := from; i < to && b.tk.meta.Open != nil; i++ {
		b.leaveToAgent(of.ProductID(i))
	}
}

// len returns the number of events.
func (b *batch) len() int { return len(b.events) + b.pieces.to - b.pieces.from }

// addStatus adds an event with more about the present state. It does not become a row of the history.
func (b *batch) addStatus(items []task.DataItem) {
	b.add(task.Event{Status: &task.Status{State: b.state, ChangedAt: b.since, DataItems: items}})
}

// addExtensions adds the extensions of a report to the last status of the batch. Without a status they are dropped: the
// next report with another state has them again if they still hold.
func (b *batch) addExtensions(rep *agent.Report) {
	if len(rep.Extensions) == 0 && len(rep.TaskExtensions) == 0 {
		return
	}
	for i := len(b.events) - 1; i >= 0; i-- {
		switch ev := &b.events[i]; {
		case ev.Status != nil:
			ev.Status.Extensions, ev.Status.TaskExtensions = rep.Extensions, rep.TaskExtensions
			return
		case ev.Task != nil:
			ev.Task.Status.Extensions, ev.Task.Extensions = rep.Extensions, rep.TaskExtensions
			return
		}
	}
}

// write stores the batch, and then applies it to the task and notifies the Watcher. tk.mu is held.
func (b *batch) write(ctx context.Context) error {
	tk := b.tk
	n := b.len()
	if n == 0 {
		return nil
	}
	w := writes.Get().(*write)
	defer w.release()
	size := w.encode(b)
	a := replay.Append{
		Log: tk.log, Records: w.records, End: b.state.Terminal(), Skip: tk.logState.lost,
		// Pieces lost with power are made again, under new numbers; a state seen by a caller must last.
		Durable: b.answers || slices.ContainsFunc(b.events, func(ev task.Event) bool { return ev.Chunk == nil }),
	}
	a.DueAt = tk.dueAt(b.state, b.since)
	tk.meta.State, tk.meta.Changed = b.state, b.since
	a.Metadata = tk.encodeMetadata()
	if tk.exceedsLimits(n, size) {
		if err := tk.trim(ctx, &a); err != nil {
			tk.invalidate() // its time and its metadata are ahead of the log
			return err
		}
	}
	if err := tk.append(&a); err != nil {
		return err
	}
	tk.engine.states.move(tk.fold.Status().State, b.state) // before anything can panic
	tk.logState.kept += n
	tk.logState.bytes += size
	tk.size += size
	if len(b.events) > 0 && b.events[0].Task != nil && b.events[0].Cause != nil {
		tk.size -= b.events[0].Cause.Size() // it was counted while the start was pending
	}
	tk.lease().Take(tk.size)
	tk.logState.last, tk.logState.lost, tk.logState.cut = tk.logState.last+tk.logState.lost, 0, false
	p := tk.partner()
	b.apply(ctx, p)
	if a.End {
		tk.engine.open.done(tk.log)
	}
	tk.engine.deadlines.ScanBy(a.DueAt)
	if p != nil && p.Log.Enabled(ctx, slog.LevelDebug) {
		tk.logger().DebugContext(tk.traced(ctx), "task", "state", string(b.state), "events", n, "last", tk.logState.last)
	}
	return nil
}

// apply applies the stored events to the task, notifies the Watcher, and counts the states for the Partner, if there is
// one. tk.mu is held.
func (b *batch) apply(ctx context.Context, p *Partner) {
	tk := b.tk
	var changes []task.Change
	tk.fold.MaxSaid = p.maxSaid()
	for i := range b.events {
		if i == b.pieces.behind {
			b.applyPieces()
		}
		tk.logState.last++
		b.events[i].Seq = tk.logState.last
		before := tk.fold.Status().State
		tk.fold.Apply(b.events[i])
		if tk.fold.Status().State == before {
			continue
		}
		if p != nil {
			p.Meter.enter(tk.fold.Status().State)
		}
		tk.publish(tk.fold.Status().State, tk.fold.Status().ChangedAt)
		if tk.meta.Watched && tk.engine.watcher != nil {
			t := tk.snapshot()
			changes = append(changes, task.Change{Seq: tk.logState.last, Task: &t})
		}
	}
	if len(b.events) == b.pieces.behind {
		b.applyPieces()
	}
	if len(changes) > 0 {
		tk.engine.watcher.Notify(ctx, tk.log, changes)
	}
}

func (b *batch) applyPieces() {
	tk, p := b.tk, &b.pieces
	if n := p.to - p.from; n > 0 {
		tk.fold.ApplyPieces(p.of, p.from, p.to, tk.logState.last+1)
		tk.logState.last += uint64(n)
	}
}

// append writes to the store, on the condition that the log is still as it was loaded. After a failure the task must be
// loaded again, because its time and its metadata are ahead of the log or, after a conflict, the log is ahead of the
// task. A write is finished even if its caller leaves. tk.mu is held.
func (tk *activeTask) append(a *replay.Append) error {
	a.Expect, a.Lists = tk.logState.revision, tk.encodeListings()
	err := tk.stored().Append(context.Background(), *a)
	if err == nil {
		tk.logState.revision++
		tk.logState.metadata = a.Metadata
		return nil
	}
	tk.engine.states.doubt(tk.log, tk.fold.Status().State)
	tk.invalidate()
	return StoreError(err, "the task cannot be stored")
}

// appendMetadata stores the metadata alone, and when the log must be looked at again. tk.mu is held.
func (tk *activeTask) appendMetadata(dueAt time.Time, durable bool) error {
	return tk.append(&replay.Append{Log: tk.log, Metadata: tk.meta.encode(), DueAt: dueAt, Durable: durable})
}

// appendPending begins the log of a task with a pending start. A caller is answered with a tentative one. tk.mu is
// held.
func (tk *activeTask) appendPending() error {
	w := writes.Get().(*write)
	defer w.release()
	w.buf = tk.meta.append(w.buf)
	err := tk.append(&replay.Append{Log: tk.log, Metadata: w.buf, DueAt: replay.Recover,
		Intent: !tk.meta.Tentative, Durable: tk.meta.Tentative})
	tk.logState.metadata = nil // it is not needed again: with the first event, the log gets others
	return err
}

// commitPending writes the first events of a task with a pending start, because a caller is about to be answered with
// the task: it is accepted, and the agent works on it. tk.mu is held.
func (tk *activeTask) commitPending(ctx context.Context) error {
	if tk.meta.Pending == nil {
		return nil
	}
	tk.meta.Unreported = tk.run == nil || !tk.run.heard
	b := tk.batch()
	b.beginTask(task.Accepted, nil)
	b.move(task.Working, nil, nil)
	return b.write(ctx)
}

// beijing is the time zone of AIP (v01.00 §4.2).
var beijing = time.FixedZone("", 8*60*60)

// nextTime returns the time of the next event: at, or a millisecond after the event before it, whichever is later. So a
// get after a time (lastStateChangedAt) misses no state. tk.mu is held.
func (tk *activeTask) nextTime(at time.Time) time.Time {
	at = at.In(beijing).Truncate(time.Millisecond)
	if next := tk.lastTime.Add(time.Millisecond); at.Before(next) {
		at = next
	}
	tk.lastTime = at
	return at
}
