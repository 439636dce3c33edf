// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// home is the inboxes of one shard, with the conversations of their AIDs.
type home struct {
	*Mailbox
	store   replay.Store
	inboxes *keylock.Map[inbox] // by AID
	scanner *replay.DueScanner

	base context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	followed map[string]bool // the logs of the tasks from which messages are being made
}

// openHome opens the inboxes of a shard.
func (m *Mailbox) openHome(ctx context.Context, _ int, store replay.Store) (*home, error) {
	h := &home{Mailbox: m, store: store, scanner: replay.NewDueScanner(store, logname.Inbox, time.Now),
		followed: make(map[string]bool)}
	h.base, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.inboxes = keylock.NewCached(idleInboxes/m.set.Count(),
		func(e *keylock.Entry[inbox]) *inbox { return &inbox{box: h, aid: e.Key} },
		func(b *inbox) bool { return b.loaded })
	for due, err := range store.Due(ctx, logname.Inbox, replay.Recover, replay.Recover) {
		if err == nil {
			err = h.resume(ctx, due.Log[1:])
		}
		if err != nil {
			h.close()
			return nil, err
		}
	}
	h.work.Go(h.scan)
	return h, nil
}

// close ends all work.
func (h *home) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	h.work.Wait()
}

// resume continues the conversations of an AID.
func (h *home) resume(ctx context.Context, aid string) error {
	return h.with(aid, func(b *inbox) error { return b.load(ctx) })
}

// with is Mailbox.with.
func (h *home) with(aid string, f func(*inbox) error) error {
	e := h.inboxes.Acquire(aid)
	defer e.Release()
	b := e.Value
	b.mu.Lock()
	defer b.mu.Unlock()
	return replay.RetryConflict(func() error { return f(b) })
}

// scan drops expired messages.
func (h *home) scan() {
	for h.scanner.Wait(h.base) {
		_, err := h.scanner.Scan(h.base, 1, func(due replay.DueLog, now time.Time) error {
			return h.with(due.Log[1:], func(b *inbox) error {
				if err := b.load(h.base); err != nil {
					return err
				}
				return b.append(h.base, nil)
			})
		})
		if err != nil && h.base.Err() == nil {
			h.log.Warn("the inboxes could not be read", "error", err)
		}
	}
}
