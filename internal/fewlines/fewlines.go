// SPDX-License-Identifier: Apache-2.0

// Package fewlines bounds the log lines caused by strangers.
package fewlines

import (
	"sync"
	"time"
)

const (
	most   = 10 // lines in a window
	window = time.Minute
)

// Limit is for one kind of line caused by strangers, as often as they like. The zero value is ready for use, by any
// number of goroutines at once.
type Limit struct {
	mu       sync.Mutex
	since    time.Time // the window
	lines    int       // in it
	unlogged int       // in it
}

// Log reports whether a line may be logged now: ten may in a minute. unlogged is the number of lines not logged in the
// window before, for the first line of the next one.
func (l *Limit) Log() (may bool, unlogged int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) >= window {
		unlogged = l.unlogged
		l.since, l.lines, l.unlogged = now, 0, 0
	}
	if l.lines++; l.lines > most {
		l.unlogged++
		return false, 0
	}
	return true, unlogged
}
