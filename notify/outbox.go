// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// box is an outbox that somebody is at work on. There is one of it for each log, so its mutex makes the engine
// the log's only writer. The mutex is never held while a receiver is waited for.
type box struct {
	engine *Engine
	name   string

	mu     sync.Mutex
	loaded bool
	exists bool   // and has not ended
	over   bool   // has ended: it cannot be written any more
	last   uint64 // number of the log's last record
	note   note
}

// acquire returns the one box of an outbox, which the caller must release.
func (e *Engine) acquire(name string) *box { return e.boxes.Acquire(name) }

func (b *box) release() { b.engine.boxes.Release(b.name) }

// load reads the head of the outbox, once. b.mu is held.
func (b *box) load(ctx context.Context) error {
	if b.loaded {
		return nil
	}
	b.exists, b.over, b.last, b.note = false, false, 0, note{First: 1}
	head, err := b.engine.store.Head(ctx, b.name)
	switch {
	case errors.Is(err, replay.ErrNotFound):
		b.loaded = true
		return nil
	case err != nil:
		return partner.StoreError(err, "the store cannot be read")
	case !head.Ended.IsZero():
		b.loaded, b.over = true, true
		return nil
	}
	n, err := decodeNote(head.Metadata)
	if err == nil && n.last() != head.Last {
		err = fmt.Errorf("its note ends at record %d, and the log at %d", n.last(), head.Last)
	}
	if err != nil {
		return task.Errorf(task.Internal, "the outbox of the task is damaged").WithCause(err)
	}
	for i := range n.Configs {
		c := &n.Configs[i]
		if c.Kept > 0 {
			data, err := b.record(ctx, c.Kept)
			if err != nil {
				return partner.StoreError(err, "the store cannot be read")
			}
			if err := json.Unmarshal(data, &c.Webhook); err != nil {
				return task.Errorf(task.Internal, "the outbox of the task is damaged").WithCause(err)
			}
		}
		readConfirm(&c.Webhook)
	}
	b.loaded, b.exists, b.last, b.note = true, true, head.Last, n
	return nil
}

// readConfirm reads Confirm as earlier builds wrote it: as a suffix of the dialect's name.
func readConfirm(w *task.Webhook) {
	if name, confirm := strings.CutSuffix(w.Dialect, " confirm"); confirm {
		w.Dialect, w.Confirm = name, true
	}
}

func decodeNote(data []byte) (note, error) {
	n := note{First: 1}
	err := json.Unmarshal(data, &n)
	if err == nil && n.First == 0 {
		err = errors.New("it begins at record 0")
	}
	return n, err
}

// write stores the note, and the records that were added to its queue, as one write, and lets what is due have
// its turn. told says that somebody is told of the write, so that it must survive a loss of power; anything
// else is made good from the task's log then. After a failure the box is read again before anything else is
// done with it. b.mu is held.
func (b *box) write(ctx context.Context, now time.Time, records [][]byte, told bool) error {
	e, n := b.engine, &b.note
	records, lost, err := b.tidy(now, records)
	if err != nil {
		b.loaded = false
		return task.Errorf(task.Internal, "the outbox of the task cannot be stored").WithCause(err)
	}
	if lost > 0 {
		e.counts.dead.Add(uint64(lost))
		b.logger().Warn("an outbox is full; its oldest notifications are dropped", "dropped", lost)
	}
	for i := range n.Configs {
		c := &n.Configs[i]
		if _, ok := n.due(c, now); ok {
			if to := e.sched.gate(b.name, endpointOf(c.Webhook.URL), now); !to.IsZero() {
				n.postpone(c, now, to)
			}
		}
	}
	wake, _ := n.wake()
	stored := *n
	stored.Configs = slices.Clone(n.Configs)
	for i := range stored.Configs {
		stored.Configs[i].Webhook = task.Webhook{}
	}
	data, err := json.Marshal(&stored)
	if err != nil {
		b.loaded = false
		return task.Errorf(task.Internal, "the outbox of the task cannot be stored").WithCause(err)
	}
	err = e.store.Append(context.WithoutCancel(ctx), replay.Append{
		Log: b.name, Expect: b.last, Records: records, Metadata: data, DueAt: wake, Trim: n.oldest() - 1, Durable: told,
	})
	if err != nil {
		b.loaded = false
		return partner.StoreError(err, "the outbox of the task cannot be stored")
	}
	b.last += uint64(len(records))
	b.exists = true
	b.admit(now)
	return nil
}

// tidy puts the note in order, and adds the records of webhooks that have none, or are to be written again. b.mu is held.
func (b *box) tidy(now time.Time, records [][]byte) (_ [][]byte, lost int, _ error) {
	n := &b.note
	keep := func(before uint64) error {
		for i := range n.Configs {
			if c := &n.Configs[i]; c.Kept < before {
				data, err := json.Marshal(&c.Webhook)
				if err != nil {
					return err
				}
				n.keep(c, data, now)
				records = append(records, data)
			}
		}
		return nil
	}
	if err := keep(1); err != nil {
		return nil, 0, err
	}
	lost = n.tidy(now)
	if n.wasteful() {
		if err := keep(n.First); err != nil {
			return nil, 0, err
		}
		n.Waste = 0
		lost += n.tidy(now)
	}
	return records, lost, nil
}

// update loads the box, changes its note and writes it. change is called again where another write went before,
// which can only be one that was taken for failed. It must not keep what it is given; where it returns an error
// nothing is written, and neither where it reports that nothing has changed. b.mu is held.
func (b *box) update(ctx context.Context, told bool, change func(n *note, now time.Time) (bool, error)) error {
	for again := false; ; again = true {
		if err := b.load(ctx); err != nil {
			return err
		}
		now := time.Now()
		changed, err := change(&b.note, now)
		if err != nil {
			b.loaded = false
			return err
		}
		if !changed {
			return nil
		}
		if err = b.write(ctx, now, nil, told); err == nil || again || !errors.Is(err, replay.ErrConflict) {
			return err
		}
	}
}

// end ends the log. b.mu is held.
func (b *box) end(ctx context.Context) error {
	b.loaded = false
	err := b.engine.store.Append(context.WithoutCancel(ctx), replay.Append{
		Log: b.name, Expect: b.last, Metadata: []byte("{}"), End: true, Trim: b.last,
	})
	if err == nil {
		b.engine.outboxes.done(b.name)
	}
	return err
}

// record reads one record. b.mu is held.
func (b *box) record(ctx context.Context, number uint64) ([]byte, error) {
	for r, err := range b.engine.store.Follow(ctx, b.name, number-1, nil) {
		if err != nil {
			return nil, err
		}
		return r.Data, nil
	}
	return nil, replay.ErrNotFound
}

// logger returns a logger whose lines name the task, its Leader and its agent.
func (b *box) logger() *slog.Logger {
	partner, leader, id := logname.Split(b.name)
	return b.engine.logger().With("task", id, "leader", leader, "agent", partner)
}

// hooks returns the webhooks of an outbox as callers see them. b.mu is held.
func (b *box) hooks() []task.Webhook {
	_, _, id := logname.Split(b.name)
	out := make([]task.Webhook, len(b.note.Configs))
	for i := range b.note.Configs {
		out[i] = b.note.Configs[i].Webhook
		out[i].TaskID, out[i].States = id, slices.Clone(out[i].States)
	}
	return out
}

// outboxes counts the outboxes of every Leader at every Partner.
type outboxes struct {
	counter quota.Counter // by logname.Owner
	used    atomic.Bool   // there ever was one, so that a Leader who has no webhooks pays nothing for them
}

// maxOutboxes is the number of outboxes that one Leader may have at one Partner.
const maxOutboxes = 100_000

// count fills the counter from the store, where every outbox that has not ended has a DueAt.
func (o *outboxes) count(ctx context.Context, store replay.Store) error {
	for due, err := range store.Due(ctx, logname.Outbox, replay.Recover, replay.EndOfTime) {
		if err != nil {
			return err
		}
		o.take(due.Log, math.MaxInt64)
	}
	return nil
}

// add counts one more outbox, unless its Leader has too many already.
func (o *outboxes) add(name string) bool { return o.take(name, maxOutboxes) }

func (o *outboxes) take(name string, max int64) bool {
	limits := quota.Limits{Total: math.MaxInt64, PerLeader: max}
	if o.counter.Take(logname.Owner(name), 1, limits) != nil {
		return false
	}
	o.used.Store(true)
	return true
}

func (o *outboxes) done(name string) { o.counter.Give(logname.Owner(name), 1) }
