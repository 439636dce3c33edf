// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// follower reads the log of a task and publishes the events of the task: each status, and each complete product, as the
// Task is at that event. While the task waits for its Leader, a follower holds only its position.
type follower struct {
	tasks *groupTasks
	task  string // the id of the task
	log   string // the name of the task's log
	about about

	// tasks.mu guards the fields below.
	begun     bool // the start of the task is stored
	queued    bool // it is in tasks.ready
	rewound   bool // publications were lost: the next step begins at confirmed
	finished  bool // the task has ended, and everything is published
	over      bool // its cursor is dropped, or about to be
	dirty     bool // it is in tasks.dirty
	cursor    follow.Cursor
	flight    []publication
	gets      replies
	confirmed follow.Position
	trace     map[string]string // the headers with the trace of the last command
	pending   *time.Timer       // accepts the start; nil once it is done

	// The fields below belong to the publishing goroutine.
	epoch uint64
	at    follow.Position // after the last publication
	tail  *follow.Follower

	delay    time.Duration // of the last attempt after a failure
	reported bool          // a failure was logged
}

// about is the part of a follower's cursor beside its position. The names of the members are stored.
type about struct {
	Dialect string    `json:"dialect"`
	Created time.Time `json:"created"`
	// Accept is after Created when a pending start is accepted, in nanoseconds; 0 for the Partner's own time.
	Accept time.Duration `json:"accept,omitempty"`
}

// errEnded is the error at the end of the log of a task.
var errEnded = errors.New("group: the task has ended")

// advance publishes the events of the task since f.at, a page of the log at most. It reports whether more follows at
// once; otherwise the follower is enqueued again when more happens. Events not published when it returns an error are
// published by the next call.
func (f *follower) advance(ctx context.Context) (more bool, err error) {
	steps, more, err := f.tail.Next(ctx)
	if err == nil {
		err = f.publishSteps(steps)
	}
	if more && err == nil {
		return true, nil
	}
	if err == nil || err == io.EOF {
		err = cmp.Or(f.publishGets(), err)
	}
	if err != nil {
		f.tail.Rewind(f.at)
		if err == io.EOF {
			err = errEnded
		}
		return false, err
	}
	f.tail.Wake(func() { f.tasks.wake(f) })
	return false, nil
}

// wake has a follower look at the log again.
func (t *groupTasks) wake(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enqueue(f)
}

// publishSteps publishes steps, as far as they are published at all.
func (f *follower) publishSteps(steps []follow.Step) error {
	last := -1 // the last step to be published
	for i, s := range steps {
		if s.Entered || s.Status != nil || s.Chunk != nil && s.Chunk.Last {
			last = i
		}
	}
	for i := range steps {
		s := &steps[i]
		t, id := f.tail.Take(s), ""
		switch {
		case s.Entered:
			id = stateID(s.After)
		case s.Status != nil, s.Chunk != nil && i == last: // otherwise, a later step shows the product, too
			id = eventID(s.After)
		default:
			f.at = s.After
			continue
		}
		if err := f.publish(t, s.After, id); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes the Task as it is at a position of the log.
func (f *follower) publish(t *task.Task, at follow.Position, kind string) error {
	if t.GroupID != f.tasks.group { // the name of the log has another task by now, not started in this group
		f.at = at
		return nil
	}
	id := messageID(f.log, kind)
	m := broker.Message{ID: id, Headers: f.traced()}
	m.Body = f.tasks.form(f.about.Dialect).AppendTask(make([]byte, 0, int(t.Size())+512), id, t)
	return f.tasks.publish(f, m, at, nil)
}

// publishGets publishes the answers to commands to get the task.
func (f *follower) publishGets() error {
	if f.at.Seq == 0 {
		return nil // a get accepts a pending start, so there will be an event
	}
	for r := f.nextGet(); r != nil; r = f.nextGet() {
		if f.tail.Task().GroupID != f.tasks.group {
			f.tasks.mu.Lock()
			r.acknowledge()
			f.tasks.mu.Unlock()
			continue
		}
		m := broker.Message{ID: r.id, Headers: r.trace}
		m.Body = r.append(nil, f.tail.Task())
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

// end ends the use of the store. mu is held, and the publishing goroutine does not use f.
func (f *follower) end() {
	f.tail.Rest()
	if f.pending != nil {
		f.pending.Stop()
	}
}

// rewind has everything unconfirmed published again. mu is held.
func (f *follower) rewind() {
	for _, p := range f.flight {
		if p.reply != nil {
			f.gets.add(p.reply)
		}
	}
	f.flight, f.rewound, f.finished = nil, true, false
}

// confirmedUpTo moves the confirmed position. It is stored a little later. mu is held.
func (f *follower) confirmedUpTo(at follow.Position) {
	if at.Seq > 0 && f.pending != nil {
		f.pending.Stop()
		f.pending = nil
	}
	if f.confirmed != at || f.finished {
		f.confirmed = at
		f.tasks.changedCursor(f)
	}
}

// The wait of a follower if its log cannot be read now. It doubles each time.
const (
	retryFirst = time.Second
	retryMax   = time.Minute
)

// failed concludes a step failed by an error of the store. mu is held.
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

// report logs the failure of a step, once.
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

// The ids of messages are derived from the log of the task and from their content, so a message published again has the
// same id, also after a part of the log was replaced by a snapshot. A state is known by the time of its beginning,
// different from that of any other state of the task; any other event is known by its number and the state.
func stateID(at follow.Position) string { return "state" + strconv.FormatInt(at.At.UnixMilli(), 36) }

func eventID(at follow.Position) string {
	return "event" + strconv.FormatUint(at.Seq, 36) + logname.Separator + strconv.FormatInt(at.At.UnixMilli(), 36)
}

// messageID returns the id of a message about the task of a log.
func messageID(log, kind string) string {
	var buf [512]byte
	all := append(append(append(buf[:0], log...), logname.Separator...), kind...)
	sum := sha256.Sum256(all)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20]))
}
