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
type live struct {
	engine *Engine
	log    string

	mu     sync.Mutex
	loaded bool
	exists bool      // the task has been started, told or not
	head   log       // what the store holds
	fold   task.Fold // what it amounts to
	note   note
	run    *run // the turn under way in this process
	cancels
	last time.Time // of the last event; the next is later

	size   int64       // about how many bytes the task takes in memory
	memory quota.Lease // counts them
	leased bool        // memory is in use
}

// log is what a writer must know of the log that it appends to.
type log struct {
	last  uint64
	kept  int
	bytes int64
	lost  uint64 // records that may have been followed and then lost with the power; see replay.Head
}

// note is what the life-cycle must remember of a task and no Leader is told. The store keeps it in the log's
// head.
type note struct {
	Terms agreedTerms `json:"terms"`
	Ref   agent.Ref   `json:"ref"`
	// Pending is the start that nobody has been told of yet: until somebody is, the agent may still reject it.
	Pending *task.Message `json:"pending,omitempty"`
	At      time.Time     `json:"at,omitzero"` // when Pending came
	Stream  bool          `json:"stream,omitempty"`
	Stamp   string        `json:"stamp,omitempty"` // of the report that ended the last turn
	// What a list of tasks shows and sorts by, so that it need not read the logs: the state, since when, and the
	// session. No state means that nobody has been told of the task yet.
	State   task.State `json:"state,omitempty"`
	Changed time.Time  `json:"changed,omitzero"`
	Session string     `json:"session,omitempty"`
	Watched bool       `json:"watched,omitempty"` // the engine's Watcher is told of every change of state
	Open    bool       `json:"open,omitempty"`    // the agent may go on by itself while the task awaits input
	// Unsent says that nothing of the turn's message has been sent to the agent yet.
	Unsent bool `json:"unsent,omitempty"`
	Taken  bool `json:"taken,omitempty"` // the agent has answered the turn's message before it acted on it
}

// agreedTerms are the terms of a task, and what of its caller's policy holds after the command that started it.
type agreedTerms struct {
	task.Terms
	AutoComplete bool `json:"autoComplete,omitempty"`
}

// encode returns the JSON that json.Unmarshal reads back by the tags. It is written twice for every turn, so it
// is appended by hand.
func (n *note) encode() []byte {
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
		dst = task.AppendTime(dst, n.At)
	}
	if n.Stream {
		dst = append(dst, `,"stream":true`...)
	}
	if n.Stamp != "" {
		dst = task.AppendString(append(dst, `,"stamp":`...), n.Stamp)
	}
	if n.State != task.None {
		dst = task.AppendString(append(dst, `,"state":`...), string(n.State))
		dst = task.AppendTime(append(dst, `,"changed":`...), n.Changed)
		dst = task.AppendString(append(dst, `,"session":`...), n.Session)
	}
	if n.Watched {
		dst = append(dst, `,"watched":true`...)
	}
	if n.Open {
		dst = append(dst, `,"open":true`...)
	}
	if n.Unsent {
		dst = append(dst, `,"unsent":true`...)
	}
	if n.Taken {
		dst = append(dst, `,"taken":true`...)
	}
	return append(dst, '}')
}

// load reads the task from the store, once. lv.mu is held.
func (lv *live) load(ctx context.Context) error {
	if lv.loaded {
		return nil
	}
	head, snapshot, records, err := lv.engine.store.Load(ctx, lv.log)
	if errors.Is(err, replay.ErrNotFound) {
		lv.loaded = true
		return nil
	}
	if err != nil {
		return StoreError(err, "the store cannot be read")
	}
	fold, err := foldAll(head, snapshot, records)
	if err != nil {
		return damaged(err)
	}
	if err := json.Unmarshal(head.Metadata, &lv.note); err != nil {
		return damaged(err)
	}
	lv.fold = fold
	lv.head = log{last: head.Last, kept: len(records), bytes: head.Bytes, lost: head.Lost}
	lv.last = lastTime(&fold.Task)
	lv.exists, lv.loaded = true, true
	lv.size = int64(len(snapshot)) + head.Bytes
	if lv.note.Pending != nil {
		lv.size += lv.note.Pending.Size()
	}
	lv.lease().Take(lv.size)
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

func lastTime(t *task.Task) time.Time {
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
func (lv *live) tick(at time.Time) time.Time {
	at = at.In(beijing).Truncate(time.Millisecond)
	if next := lv.last.Add(time.Millisecond); at.Before(next) {
		at = next
	}
	lv.last = at
	return at
}

// batch gathers the events of one write. It works on a copy of the fold's view, since nothing counts before
// it is stored.
type batch struct {
	lv     *live
	events []task.Event
	state  task.State
	since  time.Time // when state was entered
}

func (lv *live) batch() *batch {
	return &batch{lv: lv, state: lv.fold.Task.Status.State, since: lv.fold.Task.Status.ChangedAt}
}

// begin adds the first event of a pending task, in state accepted or rejected.
func (b *batch) begin(state task.State, items []task.DataItem) {
	lv := b.lv
	m := lv.note.Pending
	status := task.Status{State: state, ChangedAt: lv.tick(lv.note.At), DataItems: items}
	b.state, b.since = state, status.ChangedAt
	b.events = append(b.events, task.Event{
		Task:  &task.Task{ID: m.TaskID, SessionID: m.SessionID, GroupID: m.GroupID, Status: status},
		Cause: m,
	})
	lv.note.Pending, lv.note.At, lv.note.Session = nil, time.Time{}, m.SessionID
}

// move adds the events that lead to a state, by a legal path. It reports false where there is none.
func (b *batch) move(to task.State, items []task.DataItem, cause *task.Message) bool {
	path := task.Path(b.state, to)
	if path == nil {
		return false
	}
	now := b.lv.engine.wall()
	for i, s := range path {
		status := &task.Status{State: s, ChangedAt: b.lv.tick(now)}
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
func (b *batch) say(items []task.DataItem) {
	b.events = append(b.events, task.Event{Status: &task.Status{State: b.state, ChangedAt: b.since, DataItems: items}})
}

// keep puts what a report says beyond the canon into the last status of the batch. Without one there is nothing to tell
// it with: the next report that moves the task has it again, or it was of the moment.
func (b *batch) keep(rep *agent.Report) {
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

// write stores the batch and then lets it count. lv.mu is held.
func (b *batch) write(ctx context.Context) error {
	lv := b.lv
	if len(b.events) == 0 {
		return nil
	}
	a := replay.Append{
		Log: lv.log, Expect: lv.head.last, Records: make([][]byte, len(b.events)), End: b.state.Terminal(),
		Skip: lv.head.lost,
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
	a.DueAt = lv.wake(b.state, b.since)
	lv.note.State, lv.note.Changed = b.state, b.since
	a.Metadata = lv.note.encode()
	if lv.overfull(len(b.events), size) {
		if err := lv.trim(ctx, &a); err != nil {
			lv.forget() // the clock and the note have moved on without the log
			return err
		}
	}
	if err := lv.append(ctx, &a); err != nil {
		return err
	}
	lv.head.kept += len(b.events)
	lv.head.bytes += size
	lv.size += size
	if first := &b.events[0]; first.Task != nil && first.Cause != nil {
		lv.size -= first.Cause.Size() // it was counted when it came
	}
	lv.lease().Take(lv.size)
	lv.head.last, lv.head.lost = lv.head.last+lv.head.lost, 0
	var changes []task.Change
	for i := range b.events {
		lv.head.last++
		b.events[i].Seq = lv.head.last
		before := lv.fold.Task.Status.State
		lv.fold.Apply(b.events[i])
		if lv.note.Watched && lv.engine.watcher != nil && lv.fold.Task.Status.State != before {
			t := lv.snapshot()
			changes = append(changes, task.Change{Seq: lv.head.last, Task: &t})
		}
	}
	if len(changes) > 0 {
		lv.engine.watcher.Notify(ctx, lv.log, changes)
	}
	if a.End {
		lv.engine.open.done(lv.log)
	}
	lv.engine.alarm.At(a.DueAt)
	if p := lv.partner(); p != nil && p.Log.Enabled(ctx, slog.LevelDebug) {
		lv.logger().Debug("task", "state", string(b.state), "events", len(b.events), "last", lv.head.last)
	}
	return nil
}

// append writes to the store. After a failure the live is read again before anything else is done with it,
// because the clock, the note and, after a conflict, the log have moved on without it.
func (lv *live) append(ctx context.Context, a *replay.Append) error {
	err := lv.engine.store.Append(context.WithoutCancel(ctx), *a)
	if err == nil {
		return nil
	}
	lv.forget()
	return StoreError(err, "the task cannot be stored")
}

// forget has the task read from the store again before anything else is done with it. lv.mu is held.
func (lv *live) forget() {
	lv.loaded, lv.exists, lv.fold, lv.note, lv.head, lv.size = false, false, task.Fold{}, note{}, log{}, 0
	lv.memory.Take(0)
}

// wake returns when a task in a state must be looked at, if nobody acts before.
func (lv *live) wake(s task.State, since time.Time) time.Time {
	switch {
	case s.Terminal():
		return time.Time{}
	case s == task.AwaitingInput:
		return since.Add(lv.note.Terms.AwaitingInput)
	case s == task.AwaitingCompletion:
		return since.Add(lv.note.Terms.AwaitingCompletion)
	}
	return replay.Recover
}

// settle makes a pending start a task that is accepted, and at work, because somebody must be told of it.
func (lv *live) settle(ctx context.Context) error {
	if lv.note.Pending == nil {
		return nil
	}
	b := lv.batch()
	b.begin(task.Accepted, nil)
	b.move(task.Working, nil, nil)
	return b.write(ctx)
}

// overfull reports whether a write would exceed what is kept of a task.
func (lv *live) overfull(events int, size int64) bool {
	p := lv.partner()
	return p != nil && (lv.head.kept+events > p.MaxEvents || lv.head.bytes+size > p.MaxBytes)
}

// trim adds to a write that the older half of the log goes, behind a snapshot of the task as it then was.
func (lv *live) trim(ctx context.Context, a *replay.Append) error {
	head, snapshot, records, err := lv.engine.store.Load(ctx, lv.log)
	if err != nil {
		return StoreError(err, "the store cannot be read")
	}
	p := lv.partner()
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
	lv.head.kept -= n
	lv.head.bytes = bytes
	lv.size = int64(len(a.Snapshot)) + bytes
	lv.logger().Info("dropping a task's oldest events", "through", a.Trim)
	return nil
}

// partner returns the Partner that the task is filed under: the one that runs it, or the present one.
func (lv *live) partner() *Partner {
	if lv.run != nil {
		return lv.run.partner
	}
	name, _, _ := splitLogName(lv.log)
	return lv.engine.current(name)
}

// logger returns a logger whose lines name the task, its Leader and its agent. It is the one of the present
// configuration, since an earlier one's may be closed.
func (lv *live) logger() *slog.Logger {
	name, leader, id := splitLogName(lv.log)
	l := slog.Default()
	if p := lv.engine.current(name); p != nil {
		l = p.Log
	} else if lv.run != nil {
		l = lv.run.partner.Log
	}
	return l.With("task", id, "leader", leader, "agent", name)
}

// snapshot returns the task as it is now, without its histories. The slices are shared with the fold, which
// never changes what it has given out.
func (lv *live) snapshot() task.Task {
	t := lv.fold.Task
	t.MessageHistory, t.StatusHistory = nil, nil
	return t
}
