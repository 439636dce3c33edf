// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"container/list"
	"context"
	"time"
)

// Budget is a Counter with limits of its own. The zero Budget has none.
type Budget struct {
	Counter  *Counter
	Limits   Limits
	Patience time.Duration // the longest wait of a call for some of it
}

// Free is the most bytes of one Lease not counted: such small holdings are bounded by the number of connections,
// streams and tasks, and are to cost nothing.
const Free = 32 << 10

// Lease is one owner's holding of a Budget of memory, in bytes. It is used by one goroutine at a time. Its owner calls
// Release when it holds nothing any more, and may use it again after that. The zero Lease has no limits.
type Lease struct {
	budget Budget
	leader string
	n      int64         // counted
	lent   *list.Element // its loan; nil while it is not lent
}

// Lease returns a lease for a Leader, holding nothing yet.
func (b Budget) Lease(leader string) Lease { return Lease{budget: b, leader: leader} }

// Hold makes n the bytes held, or returns an *ExceededError and changes nothing. To hold less never fails. More than
// the limit counts as the limit, so a very large holding can be had as long as nothing else is held. It does not stand
// in the line of the leases that Wait, and gets nothing while another lease of the Leader does.
func (l *Lease) Hold(n int64) error {
	c := l.budget.Counter
	if c == nil {
		return nil
	}
	n = l.counted(n)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > l.n {
		if err := c.fits(l.leader, n-l.n, l.budget.Limits); err != nil {
			return err
		}
		if len(c.lines[Key(l.leader)]) > 0 {
			return l.exceeded()
		}
	}
	l.set(n)
	return nil
}

// Wait returns when at least n bytes are held, counted as Hold counts them. The leases of one Leader are served in the
// order of their arrival, and Leaders wait for each other only if the total is reached. It returns an *ExceededError,
// and changes nothing, when ctx ends first. A waiting lease should hold little.
func (l *Lease) Wait(ctx context.Context, n int64) error {
	c := l.budget.Counter
	if n = l.counted(n); n <= l.n || c == nil {
		return nil
	}
	w := &waiter{lease: l, n: n, ready: make(chan struct{})}
	c.enter(w)
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return c.leave(w)
	}
}

// Take is Hold for bytes not to be refused any more: they are counted, even beyond the limits.
func (l *Lease) Take(n int64) {
	c := l.budget.Counter
	if n <= Free {
		n = 0
	}
	if n == l.n || c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.set(n)
}

// Release gives everything back.
func (l *Lease) Release() { l.Take(0) }

// counted returns the number of bytes counted when n are held within the limits.
func (l *Lease) counted(n int64) int64 {
	if n <= Free {
		return 0
	}
	return min(n, l.budget.Limits.of(Key(l.leader)))
}

// set makes n the bytes counted. The counter's mutex is held.
func (l *Lease) set(n int64) {
	before := l.n
	l.n = n
	l.budget.Counter.add(Key(l.leader), n-before)
}

// exceeded returns the error of the Leader's own limit.
func (l *Lease) exceeded() error {
	limits := l.budget.Limits
	max := limits.of(Key(l.leader))
	return &ExceededError{PerLeader: max == limits.PerLeader, Max: max}
}
