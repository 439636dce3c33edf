// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/rand"
	"iter"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

const (
	maxOutboxes = 100_000 // of one Leader at one Partner

	// About so many outboxes not in use stay in memory, if they are small: the next event or outcome often comes soon.
	// Together they take some 15 MB at most.
	cachedOutboxes = 4096
	cachedEntries  = 16      // records, dead letters and attempts
	cachedBytes    = 1 << 10 // of the records of webhooks
)

// outboxes are all outboxes of a store. After each write, an outbox offers its due deliveries to the scheduler.
type outboxes struct {
	store   replay.Store
	queue   *schedule.Queue
	log     func() *slog.Logger
	dropped atomic.Uint64 // notifications, because their outbox was full
	backlog *backlog

	boxes  *keylock.Map[outbox] // by name
	owners limit.Counter        // of outboxes, by logname.Owner
	any    atomic.Bool          // there has been one; before, tasks without webhooks cost nothing

	// epoch changes when changes of a task may not have been appended to its outbox: at Open, and when the store
	// failed. An outbox with another epoch is reconciled with its task's log before anything is appended to it.
	epoch atomic.Pointer[epoch]
}

// openOutboxes counts the outboxes of a store. All of them are due at some time until they end.
func openOutboxes(
	ctx context.Context, store replay.Store, q *schedule.Queue, log func() *slog.Logger,
) (*outboxes, error) {
	o := &outboxes{store: store, queue: q, log: log, backlog: newBacklog()}
	o.boxes = keylock.NewCached(cachedOutboxes,
		func(e *keylock.Entry[outbox]) *outbox { return newOutbox(o, e) }, (*outbox).worthKeeping)
	o.newEpoch()
	for due, err := range store.Due(ctx, logname.Outbox, replay.Recover, replay.EndOfTime) {
		if err != nil {
			return nil, err
		}
		_ = o.owners.Take(logname.Owner(due.Log), 1, limit.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64})
		o.any.Store(true)
		o.backlog.unknown(due.Log)
	}
	return o, nil
}

// epoch is the time until the store is reopened, or fails.
type epoch struct {
	name     string
	reopened <-chan struct{} // of the store, when the epoch began
}

func (o *outboxes) newEpoch() {
	reopened := o.store.Reopened() // before the epoch begins, so no reopening is missed
	o.epoch.Store(&epoch{rand.Text()[:12], reopened})
}

// present returns the name of the present epoch. The next one begins with the reopening of the store, and not when the
// reconciler has noticed it: a task may change as soon.
func (o *outboxes) present() string {
	select {
	case <-o.epoch.Load().reopened:
		o.newEpoch()
	default:
	}
	return o.epoch.Load().name
}

// lock returns an outbox. Its lock is held until unlock.
func (o *outboxes) lock(name string) *outbox {
	b := o.boxes.Acquire(name).Value
	b.mu.Lock()
	return b
}

// all yields the names of all outboxes due at any time.
func (o *outboxes) all(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for due, err := range o.store.Due(ctx, logname.Outbox, replay.StartOfTime, replay.EndOfTime) {
			if !yield(due.Log, err) {
				return
			}
		}
	}
}

// update changes the metadata of the outbox of a task's log, as outbox.update does. If there is no outbox, change gets
// empty metadata, and cannot change it.
func (o *outboxes) update(ctx context.Context, log string, change func(*metadata, time.Time) (bool, error)) error {
	b := o.lock(logname.OutboxOf(log))
	defer b.unlock()
	return b.update(ctx, true, change)
}

// review offers the due deliveries to the scheduler, postpones those not to be made now, and drops notifications kept
// for long enough.
func (o *outboxes) review(ctx context.Context, name string) error {
	b := o.lock(name)
	defer b.unlock()
	return replay.RetryConflict(func() error { return b.review(ctx) })
}

// review is outboxes.review while the lock of the outbox is held.
func (b *outbox) review(ctx context.Context) error {
	if err := b.load(ctx); err != nil || !b.exists {
		return err
	}
	now := time.Now()
	m := &b.metadata
	due, ends := m.dueAt()
	if ends && m.Seen == 0 && m.Ended.IsZero() && !due.After(now) {
		// The task may have come, and its first event not have been appended here.
		if err := b.reconcile(ctx); err != nil {
			return err
		}
		due, ends = m.dueAt()
	}
	switch {
	case due.Equal(replay.Recover):
		return nil
	case due.After(now):
		b.offer(now) // for a scan then
		return nil
	case ends:
		return b.end(ctx)
	}
	nothing := true // is to be delivered, since all that was kept has expired
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if _, is := m.due(h, now); is {
			nothing = false
			if !b.of.queue.HoldUntil(b.quotaKey(), h.endpoint(), now).IsZero() {
				return b.write(ctx, now, nil, false)
			}
		}
	}
	if nothing {
		return b.write(ctx, now, nil, false)
	}
	b.offer(now)
	return nil
}

// reviewAll reviews outboxes after their deliveries left memory. If it fails, a scan finds them again.
func (o *outboxes) reviewAll(ctx context.Context, names []string) {
	for _, name := range names {
		if err := o.review(ctx, name); err != nil && ctx.Err() == nil {
			background(o.log(), err).ErrorContext(ctx, "a delivery cannot be postponed", "error", err)
			o.queue.Rescan(time.Now().Add(soon))
		}
	}
}
