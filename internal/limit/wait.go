// SPDX-License-Identifier: Apache-2.0

package limit

import "slices"

// waiter is a lease waiting until it holds n bytes.
type waiter struct {
	lease  *Lease
	n      int64
	ticket uint64        // rises by the time of arrival
	ready  chan struct{} // closed when the lease holds them
}

// fits returns an *ExceededError if the waiter cannot be served now. c.mu is held.
func (w *waiter) fits() error {
	return w.lease.budget.Counter.fits(w.lease.leader, w.n-w.lease.n, w.lease.budget.Limits)
}

// enter puts a waiter at the end of its Leader's line, and serves it at once if nothing is in its way.
func (c *Counter) enter(w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tickets++
	w.ticket = c.tickets
	if c.lines == nil {
		c.lines = make(map[string][]*waiter)
	}
	key := Key(w.lease.leader)
	c.lines[key] = append(c.lines[key], w)
	c.serve()
}

// leave takes a waiter out of its line. It returns the reason it was not served, or nil if it has been.
func (c *Counter) leave(w *waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := Key(w.lease.leader)
	i := slices.Index(c.lines[key], w)
	if i < 0 {
		return nil
	}
	err := w.fits()
	if err == nil {
		err = w.lease.exceeded() // others of the Leader came first
	}
	c.remove(key, i)
	c.serve() // it may have been in the way of others
	return err
}

// serve gives the waiters the free bytes, and asks lent ones back if some still wait. c.mu is held.
func (c *Counter) serve() {
	defer c.askSoon(0)
	for {
		key, first := "", (*waiter)(nil)
		for k, line := range c.lines {
			if w := line[0]; (first == nil || w.ticket < first.ticket) && !w.leaderFull() {
				key, first = k, w
			}
		}
		if first == nil || first.fits() != nil {
			return
		}
		c.remove(key, 0)
		c.add(key, first.n-first.lease.n)
		first.lease.n = first.n
		close(first.ready)
	}
}

// leaderFull reports whether the waiter waits for its own Leader. c.mu is held.
func (w *waiter) leaderFull() bool {
	_, ofLeader := w.lacks()
	return ofLeader
}

// lacks returns the number of bytes to be given back before the waiter can be served, and whether its own Leader must
// give them. c.mu is held.
func (w *waiter) lacks() (n int64, ofLeader bool) {
	c, key := w.lease.budget.Counter, Key(w.lease.leader)
	more, limits := w.n-w.lease.n, w.lease.budget.Limits
	if n := c.held[key] + more - limits.of(key); n > 0 {
		return n, true
	}
	return c.total + more - limits.Total, false
}

// remove takes the i-th waiter out of a line. c.mu is held.
func (c *Counter) remove(key string, i int) {
	if line := slices.Delete(c.lines[key], i, i+1); len(line) > 0 {
		c.lines[key] = line
	} else {
		delete(c.lines, key)
	}
}

// Waiting returns the number of waiting leases.
func (c *Counter) Waiting() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.lines {
		n += len(line)
	}
	return n
}
