// SPDX-License-Identifier: Apache-2.0

package quota

import "time"

// lendFor is how long a lease is lent at least before it is asked back: a caller that reads takes its bytes sooner.
const lendFor = time.Second

// loan is a lease whose owner waits for another party, such as a caller that reads nothing.
type loan struct {
	lease *Lease
	since time.Time // when it was lent or renewed
	back  func()    // see Lend
	asked bool      // back was called
}

// Lend says that the owner of the lease waits for another party from now on, and can do without what it holds. If
// another lease waits for that meanwhile, in Wait, back is called, once: the owner then has to release the lease soon.
// Those that were lent or renewed first are asked first. back is called by any goroutine, must not wait, and must not
// use the counter. The owner calls TakeBack when it waits no longer.
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

// Renew says that the other party has taken a part of what it is waited for: the time of the loan, if there is one,
// begins anew. It is called by the goroutine of the owner.
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

// ask asks for as much of what is lent as the leases lack that wait and are the first of their Leaders.
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
