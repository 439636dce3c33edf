// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"sync"

	"github.com/aip-gateway/aip-gateway/replay"
)

// home is one shard owned by this process: it counts the entries with logs there.
type home struct {
	book  *Book
	store replay.Store

	mu     sync.Mutex // taken before an entry's mutex
	closed bool       // no entry counts here any more
}

func (b *Book) openHome(_ context.Context, _ int, store replay.Store) (*home, error) {
	return &home{book: b, store: store}, nil
}

// close has entries count here no more, and writes the unwritten counts. Later uses count at the next owner.
func (h *home) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for _, e := range h.book.entries() {
		if e.home.Load() == h {
			e.leave(h)
		}
	}
}

// leave has the entry count here no more, and writes it.
func (e *entry) leave(h *home) {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	e.home.Store(nil)
	dirty := e.dirty
	e.mu.Unlock()
	if dirty {
		if err := e.writeTo(context.Background(), h, 0); err != nil {
			h.book.log.Warn("what a quota has counted in the last moments could not be written", "quota", e.account.name,
				"error", err)
		}
	}
	e.left = e.written
	e.mu.Lock()
	e.dirty = false
	e.mu.Unlock()
}
