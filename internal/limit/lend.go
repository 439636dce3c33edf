// SPDX-License-Identifier: Apache-2.0

package limit

import "time"

// lendFor is the least time a lease is lent before it is asked back: a reading caller takes its bytes sooner.
const lendFor = time.Second

// loan is a lease with its owner waiting for another party, such as a caller reading nothing.
type loan struct {
	lease *Lease
	since time.Time // when it was lent or renewed
	back  func()    // see Lend
	asked bool      // back was called
}

// Lend lends the lease from now on: its owner waits for another party, and can do without its bytes. If another lease
// waits for them meanwhile, in Wait, back is called, once: the owner then has to release the lease soon. The leases
// lent or renewed first are asked first. back is called by any goroutine, must not wait, and must not use the counter.
// The owner calls TakeBack when it waits no longer.
func (l *Lease) Lend(back func()) {
	c := l.budget.Counter
	if l.n == 0 || c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.lent = c.loans.PushBack(&loan{lease: l, since: time.Now(), back: back})
	c.askSoon(lendFor)
}

// Renew begins the time of the loan, if there is one, anew: the other party has taken a part of its bytes. It is called
// by the goroutine of the owner.
func (l *Lease) Renew() {
	if l.lent == nil {
		return
	}
	c := l.budget.Counter
	c.mu.Lock()
	defer c.mu.Unlock()
	l.lent.Value.(*loan).since = time.Now()
	c.loans.MoveToBack(l.lent)
}

// TakeBack ends Lend, if it was called. The function given to Lend is not called any more, nor is it being called.
func (l *Lease) TakeBack() {
	if l.lent == nil {
		return
	}
	c := l.budget.Counter
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loans.Remove(l.lent)
	l.lent = nil
}

// askSoon has ask called after a time, if anything waits, and something is lent. c.mu is held.
func (c *Counter) askSoon(after time.Duration) {
	if len(c.lines) > 0 && c.loans.Len() > 0 && !c.asking {
		c.asking = true
		time.AfterFunc(after, c.ask)
	}
}

// ask asks back as many lent bytes as the first waiting lease of each Leader lacks.
func (c *Counter) ask() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = false
	now := time.Now()
	for key, line := range c.lines {
		lacks, ofLeader := line[0].lacks()
		for e := c.loans.Front(); e != nil && lacks > 0; e = e.Next() {
			o := e.Value.(*loan)
			if ofLeader && Key(o.lease.leader) != key {
				continue
			}
			if age := now.Sub(o.since); age < lendFor {
				c.askSoon(lendFor - age)
				break
			}
			if !o.asked {
				o.asked = true
				o.back()
			}
			lacks -= o.lease.n
		}
	}
}
