// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// live is a task that somebody is at work on. There is one of it for each log, so its mutex is what makes the
// engine the log's only writer.
type activeTask struct {
	engine *Engine
	log    string

	mu     sync.Mutex
	loaded bool
	exists bool      // the task has been started, told or not
	logState   logState       // what the store holds
	fold   task.Fold // what it amounts to
	meta   metadata
	run    *run // the turn under way in this process
	cancels
	lastTime time.Time // of the last event; the next is later

	size   int64       // about how many bytes the task takes in memory
	memory quota.Lease // counts them
	leased bool        // memory is in use
}

// log is what a writer must know of the log that it appends to.
type logState struct {
	last  uint64
	kept  int
	bytes int64
	lost  uint64 // records that may have been followed and then lost with the power; see replay.Head
}

// note is what the life-cycle must remember of a task and no Leader is told. The store keeps it in the log's
// head.
type metadata struct {
	Terms agreedTerms `json:"terms"`
	Ref   agent.Ref   `json:"ref"`
	// Pending is the start that nobody has been told of yet: until somebody is, the agent may still reject it.
	Pending *task.Message `json:"pending,omitempty"`
	PendingAt      time.Time     `json:"at,omitzero"` // when Pending came
	Stream  bool          `json:"stream,omitempty"`
	Revision   string        `json:"stamp,omitempty"` // of the report that ended the last turn
	// What a list of tasks shows and sorts by, so that it need not read the logs: the state, since when, and the
	// session. No state means that nobody has been told of the task yet.
	State   task.State `json:"state,omitempty"`
	Changed time.Time  `json:"changed,omitzero"`
	Session string     `json:"session,omitempty"`
	Watched bool       `json:"watched,omitempty"` // the engine's Watcher is told of every change of state
	SelfResuming    bool       `json:"open,omitempty"`    // the agent may go on by itself while the task awaits input
	// Unsent says that nothing of the turn's message has been sent to the agent yet.
	Unsent bool `json:"unsent,omitempty"`
	Acknowledged  bool `json:"taken,omitempty"` // the agent has answered the turn's message before it acted on it
}

// agreedTerms are the terms of a task, and what of its caller's policy holds after the command that started it.
type agreedTerms struct {
	task.Terms
	AutoComplete bool `json:"autoComplete,omitempty"`
}

// encode returns the JSON that json.Unmarshal reads back by the tags. It is written twice for every turn, so it
// is appended by hand.
func (n *metadata) encode() []byte {
	room := 512
	if n.Pending != nil {
		room += int(n.Pending.Size())
	}
	dst := make([]byte, 0, room)
	dst = append(dst, `{"terms":{"response":`...)
	dst = strconv.AppendInt(dst, int64(n.Terms.Response), 10)
	dst = append(dst, `,"awaitingInput":`...)
	dst = strconv.AppendInt(dst, int64(n.Terms.AwaitingInput), 10)
	dst = append(dst, `,"awaitingCompletion":`...)
	dst = strconv.AppendInt(dst, int64(n.Terms.AwaitingCompletion), 10)
	dst = append(dst, `,"maxProductsBytes":`...)
	dst = strconv.AppendInt(dst, n.Terms.MaxProductsBytes, 10)
	if n.Terms.AutoComplete {
		dst = append(dst, `,"autoComplete":true`...)
	}
	dst = append(dst, `},"ref":{"task":`...)
	dst = task.AppendString(dst, n.Ref.Task)
	dst = append(dst, `,"session":`...)
	dst = task.AppendString(dst, n.Ref.Session)
	dst = append(dst, '}')
	if n.Pending != nil {
		dst = append(dst, `,"pending":`...)
		dst = task.AppendMessage(dst, n.Pending)
		dst = append(dst, `,"at":`...)
		dst = task.AppendTime(dst, n.PendingAt)
	}
	if n.Stream {
		dst = append(dst, `,"stream":true`...)
	}
	if n.Revision != "" {
		dst = task.AppendString(append(dst, `,"stamp":`...), n.Revision)
	}
	if n.State != task.None {
		dst = task.AppendString(append(dst, `,"state":`...), string(n.State))
		dst = task.AppendTime(append(dst, `,"changed":`...), n.Changed)
		dst = task.AppendString(append(dst, `,"session":`...), n.Session)
	}
	if n.Watched {
		dst = append(dst, `,"watched":true`...)
	}
	if n.SelfResuming {
		dst = append(dst, `,"open":true`...)
	}
	if n.Unsent {
		dst = append(dst, `,"unsent":true`...)
	}
	if n.Acknowledged {
		dst = append(dst, `,"taken":true`...)
	}
	return append(dst, '}')
}

// load reads the task from the store, once. tk.mu is held.
func (tk *activeTask) load(ctx context.Context) error {
	if tk.loaded {
		return nil
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
	tk.logState = logState{last: head.Last, kept: len(records), bytes: head.Bytes, lost: head.Lost}
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

// beijing is the zone that AIP's times are written in (v01.00 §4.2).
var beijing = time.FixedZone("", 8*60*60)

// tick returns the time of the next event: at, or a millisecond after the one before it, whichever is later,
// so that lastStateChangedAt hides nothing.
func (tk *activeTask) nextTime(at time.Time) time.Time {
	at = at.In(beijing).Truncate(time.Millisecond)
	if next := tk.lastTime.Add(time.Millisecond); at.Before(next) {
		at = next
	}
	tk.lastTime = at
	return at
}

// batch gathers the events of one write. It works on a copy of the fold's view, since nothing counts before
// it is stored.
type batch struct {
	tk     *activeTask
	events []task.Event
	state  task.State
	since  time.Time // when state was entered
}

func (tk *activeTask) batch() *batch {
	return &batch{tk: tk, state: tk.fold.Task.Status.State, since: tk.fold.Task.Status.ChangedAt}
}

// begin adds the first event of a pending task, in state accepted or rejected.
func (b *batch) beginTask(state task.State, items []task.DataItem) {
	tk := b.tk
	m := tk.meta.Pending
	status := task.Status{State: state, ChangedAt: tk.nextTime(tk.meta.PendingAt), DataItems: items}
	b.state, b.since = state, status.ChangedAt
	b.events = append(b.events, task.Event{
		Task:  &task.Task{ID: m.TaskID, SessionID: m.SessionID, GroupID: m.GroupID, Status: status},
		Cause: m,
	})
	tk.meta.Pending, tk.meta.PendingAt, tk.meta.Session = nil, time.Time{}, m.SessionID
}

// move adds the events that lead to a state, by a legal path. It reports false where there is none.
func (b *batch) move(to task.State, items []task.DataItem, cause *task.Message) bool {
	path := task.Path(b.state, to)
	if path == nil {
		return false
	}
	now := b.tk.engine.wall()
	for i, s := range path {
		status := &task.Status{State: s, ChangedAt: b.tk.nextTime(now)}
		ev := task.Event{Status: status}
		if i == len(path)-1 {
			status.DataItems, ev.Cause = items, cause
		}
		b.events = append(b.events, ev)
		b.state, b.since = s, status.ChangedAt
	}
	return true
}

// say adds more news of the present state: an event, but no row of the history.
func (b *batch) addStatus(items []task.DataItem) {
	b.events = append(b.events, task.Event{Status: &task.Status{State: b.state, ChangedAt: b.since, DataItems: items}})
}

// keep puts what a report says beyond the canon into the last status of the batch. Without one there is nothing to tell
// it with: the next report that moves the task has it again, or it was of the moment.
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

// write stores the batch and then lets it count. tk.mu is held.
func (b *batch) write(ctx context.Context) error {
	tk := b.tk
	if len(b.events) == 0 {
		return nil
	}
	a := replay.Append{
		Log: tk.log, Expect: tk.logState.last, Records: make([][]byte, len(b.events)), End: b.state.Terminal(),
		Skip: tk.logState.lost,
	}
	var size int64
	room := 512 * len(b.events)
	for i := range b.events {
		if m := b.events[i].Cause; m != nil {
			room += int(m.Size())
		}
	}
	buf := make([]byte, 0, room)
	for i := range b.events {
		from := len(buf)
		buf = task.AppendEvent(buf, &b.events[i])
		a.Records[i] = buf[from:len(buf):len(buf)]
		size += int64(len(buf) - from)
		// The chunks that a loss of power takes are made again, under new numbers; a state that was told must stay true.
		a.Durable = a.Durable || b.events[i].Chunk == nil
	}
	a.DueAt = tk.dueAt(b.state, b.since)
	tk.meta.State, tk.meta.Changed = b.state, b.since
	a.Metadata = tk.meta.encode()
	if tk.exceedsLimits(len(b.events), size) {
		if err := tk.trim(ctx, &a); err != nil {
			tk.invalidate() // the clock and the note have moved on without the log
			return err
		}
	}
	if err := tk.append(ctx, &a); err != nil {
		return err
	}
	tk.logState.kept += len(b.events)
	tk.logState.bytes += size
	tk.size += size
	if first := &b.events[0]; first.Task != nil && first.Cause != nil {
		tk.size -= first.Cause.Size() // it was counted when it came
	}
	tk.lease().Take(tk.size)
	tk.logState.last, tk.logState.lost = tk.logState.last+tk.logState.lost, 0
	var changes []task.Change
	for i := range b.events {
		tk.logState.last++
		b.events[i].Seq = tk.logState.last
		before := tk.fold.Task.Status.State
		tk.fold.Apply(b.events[i])
		if tk.meta.Watched && tk.engine.watcher != nil && tk.fold.Task.Status.State != before {
			t := tk.snapshot()
			changes = append(changes, task.Change{Seq: tk.logState.last, Task: &t})
		}
	}
	if len(changes) > 0 {
		tk.engine.watcher.Notify(ctx, tk.log, changes)
	}
	if a.End {
		tk.engine.open.done(tk.log)
	}
	tk.engine.alarm.At(a.DueAt)
	if p := tk.partner(); p != nil && p.Log.Enabled(ctx, slog.LevelDebug) {
		tk.logger().Debug("task", "state", string(b.state), "events", len(b.events), "last", tk.logState.last)
	}
	return nil
}

// append writes to the store. After a failure the live is read again before anything else is done with it,
// because the clock, the note and, after a conflict, the log have moved on without it.
func (tk *activeTask) append(ctx context.Context, a *replay.Append) error {
	err := tk.engine.store.Append(context.WithoutCancel(ctx), *a)
	if err == nil {
		return nil
	}
	tk.invalidate()
	return StoreError(err, "the task cannot be stored")
}

// forget has the task read from the store again before anything else is done with it. tk.mu is held.
func (tk *activeTask) invalidate() {
	tk.loaded, tk.exists, tk.fold, tk.meta, tk.logState, tk.size = false, false, task.Fold{}, metadata{}, logState{}, 0
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

// settle makes a pending start a task that is accepted, and at work, because somebody must be told of it.
func (tk *activeTask) commitPending(ctx context.Context) error {
	if tk.meta.Pending == nil {
		return nil
	}
	b := tk.batch()
	b.beginTask(task.Accepted, nil)
	b.move(task.Working, nil, nil)
	return b.write(ctx)
}

// overfull reports whether a write would exceed what is kept of a task.
func (tk *activeTask) exceedsLimits(events int, size int64) bool {
	p := tk.partner()
	return p != nil && (tk.logState.kept+events > p.MaxEvents || tk.logState.bytes+size > p.MaxBytes)
}

// trim adds to a write that the older half of the log goes, behind a snapshot of the task as it then was.
func (tk *activeTask) trim(ctx context.Context, a *replay.Append) error {
	head, snapshot, records, err := tk.engine.store.Load(ctx, tk.log)
	if err != nil {
		return StoreError(err, "the store cannot be read")
	}
	p := tk.partner()
	n, bytes := 0, head.Bytes
	for n < len(records) && (len(records)-n > p.MaxEvents/2 || bytes > p.MaxBytes/2) {
		bytes -= int64(len(records[n].Data))
		n++
	}
	if n == 0 {
		return nil
	}
	fold, err := foldAll(head, snapshot, records[:n])
	if err != nil {
		return damaged(err)
	}
	a.Trim = records[n-1].Seq
	whole := task.Event{Task: &fold.Task}
	if !fold.Task.Status.State.Settled() { // else the turn is over, and the next one withdraws for itself
		whole.Withdrawn = fold.Withdrawn
	}
	a.Snapshot = task.AppendEvent(nil, &whole)
	tk.logState.kept -= n
	tk.logState.bytes = bytes
	tk.size = int64(len(a.Snapshot)) + bytes
	tk.logger().Info("dropping a task's oldest events", "through", a.Trim)
	return nil
}

// partner returns the Partner that the task is filed under: the one that runs it, or the present one.
func (tk *activeTask) partner() *Partner {
	if tk.run != nil {
		return tk.run.partner
	}
	name, _, _ := splitLogName(tk.log)
	return tk.engine.current(name)
}

// logger returns a logger whose lines name the task, its Leader and its agent. It is the one of the present
// configuration, since an earlier one's may be closed.
func (tk *activeTask) logger() *slog.Logger {
	name, leader, id := splitLogName(tk.log)
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
