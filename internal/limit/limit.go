// SPDX-License-Identifier: Apache-2.0

// Package limit counts the Leaders' holdings of a limited thing, such as open streams or bytes of memory, and refuses
// more than the limits.
package limit

import (
	"container/list"
	"fmt"
	"strings"
	"sync"
)

// Unverified begins the names of the Leaders not verified by a certificate. Such a name costs its caller nothing, so
// all of them together have the limits of one Leader.
const Unverified = "unverified:"

// Strangers is the name for counting connections not logged in yet. Unverified callers take nothing of theirs:
// otherwise no client could log in while such callers use up their limit.
const Strangers = "strangers:"

// Key returns the name for counting a Leader's limits: its own, or Unverified for all not verified.
func Key(leader string) string {
	if strings.HasPrefix(leader, Unverified) {
		return Unverified
	}
	return leader
}

// Limits are the most to be held at once.
type Limits struct {
	Total     int64 // by all Leaders together
	PerLeader int64
}

// of returns the most for one key. Callers without proof leave half of everything to the others.
func (l Limits) of(key string) int64 {
	if key == Unverified || key == Strangers {
		return min(l.PerLeader, l.Total/2)
	}
	return min(l.PerLeader, l.Total)
}

// ExceededError is the error of a reached limit.
type ExceededError struct {
	PerLeader bool  // the Leader's own limit, and not the one of all Leaders
	Max       int64 // the most to be held
}

// Error implements error.
func (e *ExceededError) Error() string {
	if e.PerLeader {
		return fmt.Sprintf("limit: one Leader may hold no more than %d", e.Max)
	}
	return fmt.Sprintf("limit: all Leaders may hold no more than %d", e.Max)
}

// Counter counts one thing. The zero Counter is ready for use, by any number of goroutines at once. Several users
// may share a Counter and have limits of their own.
type Counter struct {
	mu    sync.Mutex
	total int64
	held  map[string]int64 // by Key; no entry is zero

	lines   map[string][]*waiter // by Key, first come first; no entry is empty
	tickets uint64
	loans   list.List // of *loan, in the order of their lending
	asking  bool      // ask is going to be called
}

// Take counts n more for a Leader, or returns an *ExceededError and changes nothing. It must be given back.
func (c *Counter) Take(leader string, n int64, l Limits) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.fits(leader, n, l); err != nil {
		return err
	}
	c.add(Key(leader), n)
	return nil
}

// fits returns an *ExceededError if a Leader must not hold n more. c.mu is held.
func (c *Counter) fits(leader string, n int64, l Limits) error {
	key := Key(leader)
	if max := l.of(key); c.held[key]+n > max {
		return &ExceededError{PerLeader: max == l.PerLeader, Max: max}
	}
	if c.total+n > l.Total {
		return &ExceededError{Max: l.Total}
	}
	return nil
}

// Give gives back n of a Leader's holding, or all of it if it is less.
func (c *Counter) Give(leader string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := Key(leader)
	c.add(key, -min(n, c.held[key]))
}

// Held returns the holding of a Leader.
func (c *Counter) Held(leader string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[Key(leader)]
}

// Total returns the holding of all Leaders together.
func (c *Counter) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// add changes the holding of a key, and serves waiting leases if something is given back. c.mu is held.
func (c *Counter) add(key string, n int64) {
	if c.held == nil {
		c.held = make(map[string]int64)
	}
	c.total += n
	if c.held[key] += n; c.held[key] == 0 {
		delete(c.held, key)
	}
	if n < 0 && len(c.lines) > 0 {
		c.serve()
	}
}
