// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// follower reads the log of a task and publishes what happens to the task: each status, and each product that is
// complete, as the Task is at that event. While the task waits for its Leader, a follower holds only its place.
type follower struct {
	tasks   *groupTasks
	name    string // of its own log
	task    string // the id of the task
	log     string // the name of the task's log
	dialect string
	created time.Time
	accept  time.Duration // after created a pending start is accepted; 0 for the Partner's own time

	// What follows is guarded by tasks.mu.
	begun     bool // the start of the task is stored
	queued    bool // it is in tasks.ready
	rewound   bool // what was published is lost: the next step begins at confirmed
	finished  bool // the task has ended, and everything is published
	over      bool // its log has ended, or is about to
	dirty     bool // it is in tasks.dirty
	copy      taskCopy
	revision  uint64 // of its log; 0 while there is none
	flight    []publication
	gets      replies
	confirmed position
	trace     map[string]string // the headers with the trace of the last command
	pending   *time.Timer       // accepts the start; nil if that is done

	// What follows belongs to the goroutine that publishes.
	epoch  uint64
	at     position // after what is published
	fold   *task.Fold
	reader replay.Reader
	isNew  bool // its task is started by this process, and was not read yet

	delay    time.Duration // of the last attempt after a failure
	reported bool          // a failure was logged
}

// position is how far a task is published. The names of the members are stored.
type position struct {
	Seq uint64 `json:"seq,omitempty"` // of the last event
	// At is when the last state was entered that is published. By it, states are found again that the task's log has
	// only in a snapshot.
	At time.Time `json:"at,omitzero"`
}

// errEnded says that nothing follows in the log of a task.
var errEnded = errors.New("group: the task has ended")

// advance publishes what has happened to the task since f.at, a page of the log at most. It reports whether more
// follows at once; otherwise the follower is enqueued again when more happens. What is not published when it returns an
// error is published by the next call.
func (f *follower) advance(ctx context.Context) (more bool, err error) {
	switch {
	case f.isNew && !f.isCopied(): // there is nothing to load
		f.isNew, f.fold, f.reader = false, new(task.Fold), f.tasks.store.Read(f.log, 0)
	case f.fold == nil:
		err = f.reload(ctx)
	}
	if err == nil {
		var records []replay.Record
		records, more, err = f.reader.Next(ctx, nil)
		if isGone(err) || errors.Is(err, replay.ErrNotFound) && f.isCopied() {
			f.fold = nil // a part of the log was trimmed, or lost, or all of it was dropped
			return true, nil
		}
		if err == nil {
			err = f.publishEvents(records)
			more = more || len(records) > 0
		}
	}
	if err != nil && err != io.EOF {
		f.rest()
		return false, err
	}
	if more {
		return true, nil
	}
	if bad := f.publishGets(); bad != nil {
		f.rest()
		return false, bad
	}
	if err == io.EOF {
		f.rest()
		return false, errEnded
	}
	if f.fold.Seq > 0 && f.fold.Status().State.Settled() {
		f.fold = nil
	}
	f.reader.Wake(func() { f.tasks.wake(f) })
	return false, nil
}

// isGone reports whether the next event of a log is no longer kept, or was lost.
func isGone(err error) bool {
	_, compacted := errors.AsType[*replay.CompactedError](err)
	_, future := errors.AsType[*replay.FutureError](err)
	return compacted || future
}

// wake has a follower look at the log again.
func (t *groupTasks) wake(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enqueue(f)
}

// reload reads the whole log, publishes what comes after f.at, and continues at its end. The error is io.EOF if the log
// has ended there.
func (f *follower) reload(ctx context.Context) error {
	head, snapshot, records, err := f.load(ctx)
	if err != nil {
		return err
	}
	f.rest()
	f.fold = new(task.Fold)
	if snapshot != nil {
		ev, err := task.DecodeEvent(snapshot)
		if err != nil {
			return err
		}
		ev.Seq = head.First - 1
		f.fold.Apply(ev)
		if ev.Seq > f.at.Seq {
			if err := f.publishMissed(); err != nil {
				return err
			}
		}
	}
	for len(records) > 0 && records[0].Seq <= f.at.Seq {
		if err := f.apply(records[0]); err != nil {
			return err
		}
		records = records[1:]
	}
	f.at.Seq = min(f.at.Seq, head.Last) // events after it were lost with the power
	if err := f.publishEvents(records); err != nil {
		return err
	}
	if !head.Ended.IsZero() {
		return io.EOF
	}
	f.reader = f.tasks.store.Read(f.log, head.Last)
	return nil
}

func (f *follower) apply(r replay.Record) error {
	ev, err := task.DecodeEvent(r.Data)
	if err != nil {
		return err
	}
	ev.Seq = r.Seq
	f.fold.Apply(ev)
	return nil
}

// publishMissed publishes the states that only a snapshot of the log has. The products of the task are known for the
// last one only.
func (f *follower) publishMissed() error {
	history := f.fold.Task().StatusHistory
	for len(history) > 0 && !history[0].ChangedAt.After(f.at.At) {
		history = history[1:]
	}
	for i := range history {
		t := *f.fold.Task()
		at := position{f.at.Seq, history[i].ChangedAt}
		if i < len(history)-1 {
			t.Status, t.Products = history[i], nil
		} else {
			at.Seq = f.fold.Seq
		}
		if err := f.publish(&t, at, stateID(at)); err != nil {
			return err
		}
	}
	f.at.Seq = f.fold.Seq
	return nil
}

// publishEvents publishes the events of records, as far as they are published at all.
func (f *follower) publishEvents(records []replay.Record) error {
	events := make([]task.Event, len(records))
	last := -1 // the last event that is published
	for i, r := range records {
		ev, err := task.DecodeEvent(r.Data)
		if err != nil {
			return err
		}
		ev.Seq = r.Seq
		events[i] = ev
		if ev.Task != nil || ev.Status != nil || ev.Chunk != nil && ev.Chunk.Last {
			last = i
		}
	}
	for i, ev := range events {
		before := f.fold.Status().State
		f.fold.Apply(ev)
		at := position{ev.Seq, f.fold.Status().ChangedAt}
		id := ""
		switch {
		case ev.Task != nil, ev.Status != nil && f.fold.Status().State != before:
			id = stateID(at)
		case ev.Status != nil, i == last: // otherwise, what follows shows the product, too
			id = eventID(at)
		default:
			f.at = at
			continue
		}
		if err := f.publish(f.fold.Task(), at, id); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes the Task as it is at a position of the log.
func (f *follower) publish(t *task.Task, at position, kind string) error {
	if t.GroupID != f.tasks.group { // the name of the log has another task by now, which was not started in this group
		f.at = at
		return nil
	}
	id := messageID(f.log, kind)
	m := broker.Message{ID: id, Headers: f.traced()}
	m.Body = f.tasks.form(f.dialect).AppendTask(make([]byte, 0, int(t.Size())+512), id, t)
	return f.tasks.publish(f, m, at, nil)
}

// publishGets publishes the answers to commands that get the task.
func (f *follower) publishGets() error {
	if f.fold.Seq == 0 {
		return nil // a get accepts a pending start, so there will be an event
	}
	for r := f.nextGet(); r != nil; r = f.nextGet() {
		if f.fold.Task().GroupID != f.tasks.group {
			f.tasks.mu.Lock()
			r.acknowledge()
			f.tasks.mu.Unlock()
			continue
		}
		m := broker.Message{ID: r.id, Headers: r.trace}
		m.Body = r.append(nil, f.fold.Task())
		if err := f.tasks.publish(f, m, f.at, r); err != nil {
			f.tasks.mu.Lock()
			defer f.tasks.mu.Unlock()
			f.gets.add(r)
			return err
		}
	}
	return nil
}

func (f *follower) nextGet() *reply {
	f.tasks.mu.Lock()
	defer f.tasks.mu.Unlock()
	if len(f.gets) == 0 {
		return nil
	}
	r := f.gets[0]
	f.gets = f.gets[1:]
	return r
}

func (f *follower) traced() map[string]string {
	f.tasks.mu.Lock()
	defer f.tasks.mu.Unlock()
	return f.trace
}

// rest drops all but the place in the log.
func (f *follower) rest() {
	if f.reader != nil {
		f.reader.Close()
	}
	f.fold, f.reader = nil, nil
}

// end ends the use of the store. mu is held, and the goroutine that publishes does not use f.
func (f *follower) end() {
	f.rest()
	if f.pending != nil {
		f.pending.Stop()
	}
}

// rewind has everything published again that is not confirmed. mu is held.
func (f *follower) rewind() {
	for _, p := range f.flight {
		if p.reply != nil {
			f.gets.add(p.reply)
		}
	}
	f.flight, f.rewound, f.finished = nil, true, false
}

// confirmedUpTo moves the confirmed position, which is stored a little later. mu is held.
func (f *follower) confirmedUpTo(at position) {
	if at.Seq > 0 && f.pending != nil {
		f.pending.Stop()
		f.pending = nil
	}
	if f.confirmed != at || f.finished {
		f.confirmed = at
		f.tasks.changedCursor(f)
	}
}

// How long a follower waits whose log cannot be read now. The delay doubles each time.
const (
	retryFirst = time.Second
	retryMax   = time.Minute
)

// failed concludes a step that has failed by an error of the store. mu is held.
func (f *follower) failed(err error) {
	if errors.Is(err, replay.ErrNotFound) { // it was dropped, or its start was never stored
		for _, r := range f.gets {
			r.acknowledge()
		}
		f.gets, f.finished = nil, true
		return
	}
	f.delay = min(max(2*f.delay, retryFirst), retryMax)
	f.tasks.after(f.delay, func() { f.tasks.wake(f) })
}

// report logs why a step has failed, once.
func (f *follower) report(err error) {
	l := f.tasks.logger().With("task", f.task)
	switch {
	case f.tasks.base.Err() != nil, errors.Is(err, replay.ErrUnavailable), errors.Is(err, errPanic):
	case errors.Is(err, replay.ErrNotFound):
		if f.at.Seq > 0 {
			l.Warn("a task was dropped before all of it was published in its group")
		}
	case !f.reported:
		f.reported = true
		l.Error("a task cannot be published in its group; trying again", "error", err)
	}
}

// The ids of messages are derived from the log of the task and from what they show, so that a message that is published
// again has the same id, also after a part of the log was replaced by a snapshot. A state is known by the time when it
// was entered, which no other state of the task has, and any other event by its number and the state.
func stateID(at position) string { return "state" + strconv.FormatInt(at.At.UnixMilli(), 36) }

func eventID(at position) string {
	return "event" + strconv.FormatUint(at.Seq, 36) + logname.Separator + strconv.FormatInt(at.At.UnixMilli(), 36)
}

// messageID returns the id of a message about the task of a log.
func messageID(log, kind string) string {
	var buf [512]byte
	all := append(append(append(buf[:0], log...), logname.Separator...), kind...)
	sum := sha256.Sum256(all)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}
