// SPDX-License-Identifier: Apache-2.0

// Package heap tells the Go runtime when to give memory back to the system: the memory of a burst of work is given back
// once, when the burst has ended. The runtime alone does so slowly.
package heap

import (
	"context"
	"time"
)

const (
	interval = time.Second // between two looks at the heap

	// There is work if a look finds so many bytes more allocated than the look before, and there is none if looks of a
	// whole rest find less each.
	working = 8 << 20
	rest    = 3 // looks

	// The memory left by a burst is given back if it is so many bytes and as much as the live heap: once for each burst,
	// and at most once in often.
	leastSpare = 32 << 20
	often      = time.Minute
)

// Sample is the state of the heap at one moment, in bytes. Spare is the process's memory for the heap beyond the live
// bytes of the last collection.
type Sample struct {
	Allocated   uint64 // since the process began
	Live, Spare uint64
}

// Follow looks at the heap by read until ctx ends. When a burst of work has ended it calls release. release collects
// and gives free memory back to the system.
func Follow(ctx context.Context, read func() Sample, release func()) {
	looks := time.NewTicker(interval)
	defer looks.Stop()
	b := burst{allocated: read().Allocated}
	for {
		select {
		case now := <-looks.C:
			if b.hasEnded(now, read()) {
				release()
			}
		case <-ctx.Done():
			return
		}
	}
}

// burst is the memory from look to look.
type burst struct {
	allocated uint64    // at the last look
	calm      int       // looks without work, up to rest
	due       bool      // there was work since memory was given back
	released  time.Time // when it was given back last
}

// hasEnded reports whether memory is to be given back.
func (b *burst) hasEnded(now time.Time, s Sample) bool {
	if s.Allocated-b.allocated >= working {
		b.calm, b.due = 0, true
	} else {
		b.calm = min(b.calm+1, rest)
	}
	b.allocated = s.Allocated
	ended := b.due && b.calm == rest && s.Spare >= max(leastSpare, s.Live) && now.Sub(b.released) >= often
	if ended {
		b.due, b.released = false, now
	}
	return ended
}
