// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// An outbox is written after its task's log, so a crash or a failing store may leave it behind. Then what is
// missing is read from the task's log.

// How long to wait before outboxes are compared with their tasks again, where the store failed.
const (
	catchUpSoon = time.Second
	catchUpMost = time.Minute
)

// fallBehind says that a change was not put into its outbox. Which one is not remembered: from now on every
// outbox is compared with its task before it is written to, and all of them in the background.
func (e *Engine) fallBehind() {
	e.newEpoch()
	select {
	case e.lag <- struct{}{}:
	default:
	}
}

// keepUp compares outboxes with their tasks when the engine opens, whenever one has fallen behind, and when the store
// can be written again: a change may then be in a task's log although its writer took it for not stored.
func (e *Engine) keepUp() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	waiting, wait := true, catchUpSoon // until timer fires
	reopened := e.store.Reopened()
	for {
		select {
		case <-e.base.Done():
			return
		case <-e.lag: // the store has just failed
			if !waiting {
				waiting = true
				timer.Reset(wait)
			}
			continue
		case <-reopened:
			reopened = e.store.Reopened() // before the store is used, so that no reopening is missed
			wait = catchUpSoon
			e.newEpoch()
			e.sched.resume()
		case <-timer.C:
			waiting = false
		}
		err := e.compareAll()
		switch {
		case e.base.Err() != nil:
			return
		case err == nil:
			wait = catchUpSoon
		default:
			e.loggerOf(err).Error("outboxes cannot be compared with their tasks; trying again", "error", err)
			wait = min(2*wait, catchUpMost)
			e.fallBehind()
		}
	}
}

// sleep waits, and reports false when the engine closes.
func (e *Engine) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-e.base.Done():
		return false
	case <-t.C:
		return true
	}
}

// compareAll compares every outbox with its task. It goes on after an error, of which it returns the last.
func (e *Engine) compareAll() (failed error) {
	for w, err := range e.store.Due(e.base, logname.Outbox, replay.Recover, replay.EndOfTime) {
		if err != nil {
			return err
		}
		if err := e.compare(w.Log); err != nil {
			failed = err
		}
	}
	return failed
}

func (e *Engine) compare(name string) error {
	b := e.acquire(name)
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.load(e.base)
	if err != nil || !b.exists || b.note.Epoch == *e.epoch.Load() {
		return err
	}
	return b.catchUp(e.base)
}

// catchUp adds to the outbox what happened to its task since the last event that is accounted for, with the
// content that Tell would have given it. It writes only if there was anything. b.mu is held.
func (b *box) catchUp(ctx context.Context) error {
	n := &b.note
	epoch := *b.engine.epoch.Load() // as it was before the task's log is read
	brief, err := b.engine.store.Head(ctx, logname.TaskOf(b.name))
	switch {
	case errors.Is(err, replay.ErrNotFound):
		if n.Seen == 0 || !n.Ended.IsZero() {
			return nil
		}
		// It ended, was kept for as long as ended tasks are, and has been dropped. What it ended in, nobody knows.
		b.logger().Warn("the log of a task was dropped before its end could be told to its webhooks")
		now := time.Now()
		n.Ended, n.Epoch = now, epoch
		return b.write(ctx, now, nil, false)
	case err != nil:
		return partner.StoreError(err, "the store cannot be read")
	case brief.Last == n.Seen:
		return nil
	}

	head, snapshot, records, err := b.engine.store.Load(ctx, logname.TaskOf(b.name))
	if errors.Is(err, replay.ErrNotFound) {
		return nil // dropped just now; the next time says so
	}
	if err != nil {
		return partner.StoreError(err, "the store cannot be read")
	}
	now := time.Now()
	seen, ended := n.Seen, n.Ended
	var out batch
	if err := out.missing(n, head, snapshot, records, now); err != nil {
		b.loaded = false
		return task.Errorf(task.Internal, "the task's log is damaged").WithCause(err)
	}
	if len(out.records) == 0 && n.Ended.Equal(ended) && (seen > 0 || n.Seen == 0) {
		return nil
	}
	n.Epoch = epoch
	return b.write(ctx, now, out.records, false)
}

// missing adds the changes of a task's log, as the store returned it, that are not accounted for.
func (r *batch) missing(n *note, head replay.Head, snapshot []byte, records []replay.Record, now time.Time) error {
	var fold task.Fold
	if snapshot != nil {
		ev, err := task.DecodeEvent(snapshot)
		if err != nil {
			return err
		}
		ev.Seq = head.First - 1
		fold.Apply(ev)
		r.behind(n, &fold, now)
	}
	for _, rec := range records {
		ev, err := task.DecodeEvent(rec.Data)
		if err != nil {
			return err
		}
		ev.Seq = rec.Seq
		was := fold.Task.Status.State
		fold.Apply(ev)
		if ev.Seq == 1 && !n.Ended.IsZero() && fold.Task.Status.ChangedAt.After(n.Told) {
			n.renew()
		}
		if ev.Seq > n.Seen && ev.Chunk == nil && ev.Message == nil && fold.Task.Status.State != was {
			r.add(n, ev.Seq, &fold.Task, "", now)
		}
	}
	return nil
}

// behind adds the changes that a snapshot stands for, as far as its history tells them by their times. Which
// events they were is not known any more: they get the last numbers before the snapshot ends. What the task
// had made by then is known of the last one only.
func (r *batch) behind(n *note, fold *task.Fold, now time.Time) {
	if n.Seen >= fold.Seq {
		return
	}
	history := fold.Task.StatusHistory
	for len(history) > 0 && !history[0].ChangedAt.After(n.Told) {
		history = history[1:]
	}
	if room := fold.Seq - n.Seen; uint64(len(history)) > room {
		history = history[uint64(len(history))-room:]
	}
	for i := range history {
		t := fold.Task
		if i < len(history)-1 {
			t.Products = nil
			t.Status = history[i]
		}
		r.add(n, fold.Seq-uint64(len(history)-1-i), &t, "", now)
	}
}
