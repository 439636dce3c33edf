// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"sync"
	"sync/atomic"
)

// Positions are the places the readers of a log have read up to. Drivers implement Store.Unread with them. The zero
// value has none. Its methods, and those of each Position, may be called by any number of goroutines at once.
type Positions struct {
	mu  sync.Mutex
	all []*Position
}

// Position is the place one reader has read up to. It is in one Positions at most.
type Position struct {
	after atomic.Uint64
	in    *Positions // only the owner of the Position uses this field
	at    int        // its index in in.all; guarded by in.mu
}

// Join adds a reader at a number.
func (ps *Positions) Join(p *Position, after uint64) {
	p.after.Store(after)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.in, p.at = ps, len(ps.all)
	ps.all = append(ps.all, p)
}

// Move moves the reader to a number: it has read up to there.
func (p *Position) Move(after uint64) { p.after.Store(after) }

// Leave removes the reader, if it is there.
func (p *Position) Leave() {
	if p.in == nil {
		return
	}
	ps := p.in
	p.in = nil
	ps.mu.Lock()
	defer ps.mu.Unlock()
	last := len(ps.all) - 1
	ps.all[p.at] = ps.all[last]
	ps.all[p.at].at = p.at
	ps.all[last] = nil
	if ps.all = ps.all[:last]; last == 0 {
		ps.all = nil
	}
}

// Unread reports whether a reader has not read the record with the number seq, and can: first is the oldest record
// kept.
func (ps *Positions) Unread(first, seq uint64) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		if after := p.after.Load(); after < seq && after+1 >= first {
			return true
		}
	}
	return false
}
