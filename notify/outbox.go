// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// outbox is an outbox in use. There is one value for each log, so its lock makes the engine the only writer of the log.
// The lock is never held while a receiver is waited for. All methods but worthKeeping are called with the lock held.
type outbox struct {
	of                    *outboxes
	name                  string
	entry                 *keylock.Entry[outbox]
	partner, leader, task string

	mu       sync.Mutex
	loaded   string // the epoch of the last read of metadata; empty while it must be read again
	exists   bool   // and has not ended
	ended    bool   // cannot be written any more
	revision uint64 // of the log; 0 while there is none
	last     uint64 // number of the log's last record
	metadata metadata

	counted        bool      // waiting is the outbox's part of the backlog
	waiting, spare []waiting // spare is only memory
}

func newOutbox(o *outboxes, e *keylock.Entry[outbox]) *outbox {
	b := &outbox{of: o, name: e.Key, entry: e}
	b.partner, b.leader, b.task = logname.Split(b.name)
	return b
}

func (b *outbox) unlock() {
	b.mu.Unlock()
	b.entry.Release()
}

// worthKeeping reports whether the outbox is kept in memory when its last use ends.
func (b *outbox) worthKeeping() bool {
	entries, size := len(b.metadata.Queue), 0
	for i := range b.metadata.Hooks {
		h := &b.metadata.Hooks[i]
		entries += len(h.Dead) + h.attemptsKept()
		size += h.Size
	}
	return b.loaded != "" && b.exists && entries <= cachedEntries && size <= cachedBytes
}

// logger returns a logger with the names of the task, its Leader and its agent in its lines.
func (b *outbox) logger() *slog.Logger {
	return b.of.log().With("task", b.task, "leader", b.leader, "partner", b.partner)
}

// quotaKey is the Leader counted for the deliveries.
func (b *outbox) quotaKey() string { return limit.Key(b.leader) }

func unreadable(err error) error { return partner.StoreError(err, "the store cannot be read") }

func damaged(err error) error {
	return task.Errorf(task.Internal, "the outbox of the task is damaged").WithCause(err)
}

// load reads the metadata and the webhooks, unless they are in memory.
func (b *outbox) load(ctx context.Context) error {
	epoch := b.of.present()
	if b.loaded == epoch {
		return nil
	}
	b.loaded, b.exists, b.ended, b.revision, b.last, b.metadata = "", false, false, 0, 0, metadata{First: 1}
	head, err := b.of.store.Head(ctx, b.name)
	switch {
	case errors.Is(err, replay.ErrNotFound):
		b.loaded = epoch
		b.count()
		return nil
	case err != nil:
		return unreadable(err)
	case !head.Ended.IsZero():
		b.loaded, b.ended = epoch, true
		b.count()
		return nil
	}
	m, err := decodeMetadata(head.Metadata)
	if err == nil && m.last() != head.Last {
		err = fmt.Errorf("its metadata ends at record %d, and the log at %d", m.last(), head.Last)
	}
	if err != nil {
		return damaged(err)
	}
	for i := range m.Hooks {
		h := &m.Hooks[i]
		data, err := replay.ReadOne(ctx, b.of.store, b.name, h.Record)
		if err != nil {
			return unreadable(err)
		}
		if err := json.Unmarshal(data, &h.Webhook); err != nil {
			return damaged(err)
		}
	}
	b.loaded, b.exists, b.revision, b.last, b.metadata = epoch, true, head.Revision, head.Last, m
	b.count()
	return nil
}

func decodeMetadata(data []byte) (metadata, error) {
	m := metadata{First: 1}
	err := json.Unmarshal(data, &m)
	if err == nil && (m.First == 0 || slices.ContainsFunc(m.Hooks, func(h hook) bool { return h.Record == 0 })) {
		err = errors.New("it names a record 0")
	}
	return m, err
}

// update changes the metadata and writes it. change is called again if another write came first. It must not keep its
// argument. Nothing is written if change returns an error, or reports no change.
func (b *outbox) update(ctx context.Context, durable bool, change func(*metadata, time.Time) (bool, error)) error {
	return replay.RetryConflict(func() error {
		if err := b.load(ctx); err != nil {
			return err
		}
		now := time.Now()
		changed, err := change(&b.metadata, now)
		if err != nil {
			b.loaded = ""
			return err
		}
		if !changed {
			return nil
		}
		return b.write(ctx, now, nil, durable)
	})
}

// write stores the metadata, and the records added to its queue, as one write, and offers the due deliveries to the
// scheduler. A loss of power can take a write if it is not durable: the outbox is then reconciled with the task's log.
// After an error the outbox is read again before its next use.
func (b *outbox) write(ctx context.Context, now time.Time, records [][]byte, durable bool) error {
	const what = "the outbox of the task cannot be stored"
	m := &b.metadata
	records, lost, err := b.tidy(now, records)
	if err != nil {
		b.loaded = ""
		return task.Errorf(task.Internal, what).WithCause(err)
	}
	if lost > 0 {
		b.of.dropped.Add(uint64(lost))
		b.logger().WarnContext(ctx, "an outbox is full; its oldest notifications are dropped", "dropped", lost)
	}
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if _, due := m.due(h, now); due {
			if until := b.of.queue.HoldUntil(b.quotaKey(), h.endpoint(), now); !until.IsZero() {
				m.postpone(h, now, until)
			}
		}
	}
	due, _ := m.dueAt()
	data, err := json.Marshal(m)
	if err != nil {
		b.loaded = ""
		return task.Errorf(task.Internal, what).WithCause(err)
	}
	err = b.of.store.Append(context.WithoutCancel(ctx), replay.Append{
		Log: b.name, Expect: b.revision, Records: records, Metadata: data, DueAt: due, Trim: m.oldest() - 1,
		Durable: durable,
	})
	if err != nil {
		b.loaded = ""
		b.uncount()
		return partner.StoreError(err, what)
	}
	b.revision++
	b.last += uint64(len(records))
	b.exists = true
	b.count()
	b.offer(now)
	return nil
}

// tidy tidies the metadata, and adds the missing records of webhooks, and those to be written again.
func (b *outbox) tidy(now time.Time, records [][]byte) (_ [][]byte, lost int, _ error) {
	m := &b.metadata
	store := func(before uint64) error {
		for i := range m.Hooks {
			if h := &m.Hooks[i]; h.Record < before {
				data, err := json.Marshal(&h.Webhook)
				if err != nil {
					return err
				}
				m.store(h, data, now)
				records = append(records, data)
			}
		}
		return nil
	}
	if err := store(1); err != nil {
		return nil, 0, err
	}
	lost = m.tidy(now)
	if m.wasteful() {
		if err := store(m.First); err != nil {
			return nil, 0, err
		}
		m.Waste = 0
		lost += m.tidy(now)
	}
	return records, lost, nil
}

// offer offers the due deliveries to the scheduler. The scheduler asks for a scan when something is due later.
func (b *outbox) offer(now time.Time) {
	m := &b.metadata
	at, _ := m.dueAt()
	due := make([]schedule.Due, 0, maxHooks)
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if _, is := m.due(h, now); is {
			due = append(due, schedule.Due{Webhook: h.Webhook.ID, Endpoint: h.endpoint()})
		}
	}
	b.of.queue.Offer(b.name, b.quotaKey(), due, at, now)
}

// end ends the log.
func (b *outbox) end(ctx context.Context) error {
	b.loaded = ""
	err := b.of.store.Append(context.WithoutCancel(ctx), replay.Append{
		Log: b.name, Expect: b.revision, Metadata: []byte("{}"), End: true, Trim: b.last,
	})
	if err != nil {
		b.uncount()
		return err
	}
	b.of.owners.Give(logname.Owner(b.name), 1)
	b.metadata = metadata{First: 1}
	b.count()
	return nil
}

// webhooks returns the webhooks as callers see them.
func (b *outbox) webhooks() []task.Webhook {
	out := make([]task.Webhook, len(b.metadata.Hooks))
	for i := range b.metadata.Hooks {
		out[i] = b.metadata.Hooks[i].Webhook
		out[i].TaskID, out[i].States = b.task, slices.Clone(out[i].States)
	}
	return out
}
