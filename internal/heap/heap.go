// SPDX-License-Identifier: Apache-2.0

// Package heap tells the Go runtime when to collect and when to give memory back to the system: while there is work it
// collects less often, and when a burst of work has ended, what the burst needed is given back at once.
//
// Both change the whole process, so what an operator has set in GOGC or GOMEMLIMIT stands: then nothing is collected
// less often.
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

	// While there is work, garbage of up to three times what lives may gather before it is collected, but of no more
	// than plenty bytes where what lives is less than that. The runtime's own rule is once what lives.
	usual, most = 100, 300 // in percent
	plenty      = 128 << 20

	// What a burst has left is given back if it is so many bytes and as much as what lives: once for each burst, and at
	// most once in often.
	leastSpare = 32 << 20
	often      = time.Minute
)

// Sample is how the heap is at one moment, in bytes. Spare is what the process holds for the heap beyond what lived at
// the last collection.
type Sample struct {
	Allocated   uint64 // since the process began
	Live, Spare uint64
	Percent     int // GOGC
}

// Runtime is what of the Go runtime is used.
type Runtime interface {
	Read() Sample
	SetPercent(percent int)
	Release() // collects, and gives back to the system what is free
}

// Settings say what is done.
type Settings struct {
	Spread  bool // collect less often while there is work
	Release bool // give memory back when a burst has ended
}

// Follow looks at the heap until ctx ends, and then sets the usual percent again. Of several that run at once each may
// set what another has set: a look later it is set again.
func Follow(ctx context.Context, r Runtime, s Settings) {
	looks := time.NewTicker(interval)
	defer looks.Stop()
	p := pace{settings: s, set: usual, allocated: r.Read().Allocated, calm: rest}
	for {
		select {
		case now := <-looks.C:
			at := r.Read()
			percent, release := p.step(now, at)
			if percent != at.Percent {
				r.SetPercent(percent)
			}
			if release {
				r.Release()
			}
		case <-ctx.Done():
			if p.set != usual && r.Read().Percent == p.set {
				r.SetPercent(usual)
			}
			return
		}
	}
}

// pace is what is remembered from look to look.
type pace struct {
	settings  Settings
	allocated uint64    // at the last look
	calm      int       // looks without work, up to rest
	set       int       // the percent that was chosen last
	due       bool      // there was work since memory was given back
	released  time.Time // when it was given back last
}

// step returns what the percent should be, and whether memory is given back. A percent that is neither the usual one
// nor the one that was set here has been set by something else, and stays.
func (p *pace) step(now time.Time, s Sample) (percent int, release bool) {
	if s.Allocated-p.allocated >= working {
		p.calm, p.due = 0, true
	} else {
		p.calm = min(p.calm+1, rest)
	}
	p.allocated = s.Allocated
	percent = s.Percent
	if p.settings.Spread && (percent == usual || percent == p.set) {
		percent = usual
		if p.calm < rest {
			percent = spread(s.Live)
		}
		p.set = percent
	}
	release = p.settings.Release && p.due && p.calm == rest && s.Spare >= max(leastSpare, s.Live) &&
		now.Sub(p.released) >= often
	if release {
		p.due, p.released = false, now
	}
	return percent, release
}

// spread returns the percent while there is work, in steps of a quarter of the usual one: to set it stops the process
// for a moment.
func spread(live uint64) int {
	const step = usual / 4
	percent := most
	if live > 0 {
		percent = int(min(most, plenty*100/live))
	}
	return max(usual, percent/step*step)
}
