// SPDX-License-Identifier: Apache-2.0

package quota

import "unsafe"

// Budget is a Counter with limits of its own. The zero Budget has none.
type Budget struct {
	Counter *Counter
	Limits  Limits
}

// Free is up to how many bytes one Lease holds without being counted: what is so small is bounded by the number of
// connections, streams and tasks, and is to cost nothing.
const Free = 32 << 10

// Lease is what one owner holds of a Budget of memory, in bytes. It is used by one goroutine at a time. Its owner calls
// Release when it holds nothing any more, and may use it again after that. The zero Lease has no limits.
type Lease struct {
	budget Budget
	leader string
	n      int64 // counted
	shared []byte
}

// Lease returns a lease for a Leader that holds nothing yet.
func (b Budget) Lease(leader string) Lease { return Lease{budget: b, leader: leader} }

// Hold makes n the bytes that are held, or returns an *ExceededError and changes nothing. To hold less never fails.
// More than the limit counts as the limit, so that what is very large can be had as long as nothing else is held.
func (l *Lease) Hold(n int64) error { return l.hold(n, false) }

// Take is Hold for what cannot be refused any more: it is counted, even beyond the limits.
func (l *Lease) Take(n int64) { _ = l.hold(n, true) }

func (l *Lease) hold(n int64, always bool) error {
	if n <= Free {
		n = 0
	}
	c := l.budget.Counter
	if n == l.n || c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !always {
		n = min(n, l.budget.Limits.of(Key(l.leader)))
		if err := c.fits(l.leader, n-l.n, l.budget.Limits); err != nil && n > l.n {
			return err
		}
	}
	c.add(Key(l.leader), n-l.n)
	l.n = n
	return nil
}

// Share holds bytes that other leases may hold, too, and that are counted once for all of them. A lease shares one
// slice at a time; it is given back by Release.
func (l *Lease) Share(data []byte) error {
	l.unshare()
	c := l.budget.Counter
	if len(data) <= Free || c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := unsafe.SliceData(data)
	if c.shared[first] == 0 {
		n := min(int64(len(data)), l.budget.Limits.of(Key(l.leader)))
		if err := c.fits(l.leader, n, l.budget.Limits); err != nil {
			return err
		}
		c.add(Key(l.leader), int64(len(data)))
	}
	if c.shared == nil {
		c.shared = make(map[*byte]int)
	}
	c.shared[first]++
	l.shared = data
	return nil
}

func (l *Lease) unshare() {
	if l.shared == nil {
		return
	}
	c := l.budget.Counter
	c.mu.Lock()
	defer c.mu.Unlock()
	first := unsafe.SliceData(l.shared)
	if c.shared[first]--; c.shared[first] == 0 {
		delete(c.shared, first)
		c.add(Key(l.leader), -int64(len(l.shared)))
	}
	l.shared = nil
}

// Release gives everything back.
func (l *Lease) Release() {
	l.unshare()
	l.Take(0)
}
