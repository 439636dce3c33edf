// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The store drops the log of a task some time after the task has ended. A broker may be away for longer, and a Partner
// may be muted for longer. So a task that has ended, and is not published to its end, is copied: its records are
// appended to the log of its follower, which ends when all of it is published.

const (
	// keepEvery is how often the tasks are looked at that are not published to their end, and how long ago a task must
	// have ended to be copied.
	keepEvery = 10 * time.Second
	// maxCopies is how many bytes the copies of one group may take. A task beyond it is dropped like any other.
	maxCopies = 256 << 20
)

// taskCopy is the copy of a task's log in the log of its follower. The zero value is none.
type taskCopy struct {
	records uint64
	bytes   int64
}

// keepLater has the tasks looked at after a while. mu is held.
func (t *groupTasks) keepLater() {
	if !t.keeping && !t.closed {
		t.keeping = true
		t.after(keepEvery, func() { t.keep(t.base, keepEvery) })
	}
}

// keep copies the tasks that have ended for an age and are not published to their end. A task that cannot be copied now
// is looked at again.
func (t *groupTasks) keep(ctx context.Context, age time.Duration) {
	t.saver.Lock()
	defer t.saver.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keeping = false
	list := t.unpublished()
	for _, f := range list {
		a, free := f.write(), maxCopies-t.copied
		t.mu.Unlock()
		err := t.copy(ctx, f, a, free, age)
		t.mu.Lock()
		if errors.Is(err, replay.ErrUnavailable) || ctx.Err() != nil {
			break
		}
	}
	if len(list) > 0 {
		t.keepLater()
	}
}

// unpublished returns the followers with something to publish whose tasks are not copied. mu is held.
func (t *groupTasks) unpublished() (list []*follower) {
	for _, f := range t.followers {
		waits := f.queued || f.rewound || f.delay > 0 || len(f.flight) > 0 || t.current == f
		if waits && f.begun && f.copy.records == 0 {
			list = append(list, f)
		}
	}
	return list
}

// copy copies a task that has ended for an age, if it takes no more bytes than are free, with an append to the log of
// its follower.
func (t *groupTasks) copy(
	ctx context.Context, f *follower, a replay.Append, free int64, age time.Duration,
) error {
	head, err := t.store.Head(ctx, f.log)
	if err != nil || head.Ended.IsZero() || time.Since(head.Ended) < age || head.Bytes > free {
		return err
	}
	head, snapshot, records, err := t.store.Load(ctx, f.log)
	if err != nil {
		return err
	}
	if snapshot != nil {
		a.Records = append(a.Records, copied(head.First-1, true, snapshot))
	}
	for _, r := range records {
		a.Records = append(a.Records, copied(r.Seq, false, r.Data))
	}
	a.Durable = true
	return t.put(ctx, f, a)
}

// put appends to the log of a follower, a copy or the cursor alone. saver is held.
func (t *groupTasks) put(ctx context.Context, f *follower, a replay.Append) error {
	return replay.RetryConflict(func() error {
		err := t.store.Append(ctx, a)
		switch {
		case errors.Is(err, replay.ErrConflict):
			// What cannot be stored may be stored all the same: the cursor, or a copy.
			head, bad := t.store.Head(ctx, f.name)
			if bad != nil && !errors.Is(bad, replay.ErrNotFound) {
				return bad
			}
			if a.Expect = head.Revision; head.Last > 0 {
				a.Records = nil
			}
			t.stored(f, head.Revision, taskCopy{head.Last, head.Bytes})
		case err == nil:
			c := taskCopy{records: uint64(len(a.Records))}
			for _, data := range a.Records {
				c.bytes += int64(len(data))
			}
			t.stored(f, a.Expect+1, c)
		}
		return err
	})
}

// stored says which revision the log of a follower has, and that the task is copied, if it is.
func (t *groupTasks) stored(f *follower, revision uint64, c taskCopy) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f.revision = revision
	if c.records == 0 || f.copy.records > 0 {
		return
	}
	f.copy = c
	if !f.over {
		t.copied += c.bytes
	}
}

// copied returns a record of a copy: twice the number of the event, plus one for a snapshot, and the event. It is a
// stored format.
func copied(seq uint64, isSnapshot bool, event []byte) []byte {
	n := seq << 1
	if isSnapshot {
		n |= 1
	}
	return append(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(event)), n), event...)
}

var errDamaged = errors.New("group: the copy of a task is damaged")

// load loads the log of the task, or its copy where there is one: under the name of the task, there may be another task
// by then.
func (f *follower) load(ctx context.Context) (head replay.Head, snapshot []byte, records []replay.Record, err error) {
	if !f.isCopied() {
		return f.tasks.store.Load(ctx, f.log)
	}
	_, _, all, err := f.tasks.store.Load(ctx, f.name)
	if err != nil {
		return head, nil, nil, err
	}
	head = replay.Head{First: 1, Ended: time.Now()} // a copy is of a task that has ended
	for _, r := range all {
		n, size := binary.Uvarint(r.Data)
		if size <= 0 {
			return head, nil, nil, errDamaged
		}
		head.Last = n >> 1
		if n&1 != 0 {
			head.First, snapshot = head.Last+1, r.Data[size:]
			continue
		}
		records = append(records, replay.Record{Seq: head.Last, Data: r.Data[size:]})
	}
	return head, snapshot, records, nil
}

// isCopied reports whether there is a copy of the task.
func (f *follower) isCopied() bool {
	f.tasks.mu.Lock()
	defer f.tasks.mu.Unlock()
	return f.copy.records > 0
}
