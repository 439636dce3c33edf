// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"sync"
	"time"
)

const (
	// reportAfter is the time for gathering the debts of entries before a report of them.
	reportAfter = 50 * time.Millisecond
	// reportAgain is the time between a report without an answer and the next one.
	reportAgain = time.Second
	// reportLast is the time for the last reports, at the end of the process.
	reportLast = 2 * time.Second
)

// debts are the entries of one shard with uses from here for the owner to count.
type debts struct {
	mu   sync.Mutex
	list []*entry // each is used until it is taken off
	wake chan struct{}
}

// openDebts reports the debts of all shards to their owners, until ctx ends.
func (b *Book) openDebts(ctx context.Context) {
	b.debts = make([]debts, b.set.Count())
	for shard := range b.debts {
		d := &b.debts[shard]
		d.wake = make(chan struct{}, 1)
		b.done.Go(func() {
			for d.wait(ctx, reportAfter) {
				for b.report(ctx, shard, d) != nil && d.sleep(ctx, reportAgain) {
				}
			}
			last, done := context.WithTimeout(context.WithoutCancel(ctx), reportLast)
			defer done()
			_ = b.report(last, shard, d) // the debt to an unreachable owner is lost
		})
	}
}

// wait waits for an entry in the list, and then gives others the time to join it. It returns false when ctx has ended.
func (d *debts) wait(ctx context.Context, more time.Duration) bool {
	select {
	case <-d.wake:
		return d.sleep(ctx, more)
	case <-ctx.Done():
		return false
	}
}

func (d *debts) sleep(ctx context.Context, t time.Duration) bool {
	select {
	case <-time.After(t):
		return true
	case <-ctx.Done():
		return false
	}
}

// add adds an entry.
func (d *debts) add(e *entry) {
	e.users.Add(1)
	d.mu.Lock()
	d.list = append(d.list, e)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// maxReported is the most entries in one message to an owner.
const maxReported = 500

// report sends the debts of a shard to its owner. Those of a failed message stay debts.
func (b *Book) report(ctx context.Context, shard int, d *debts) error {
	for {
		d.mu.Lock()
		list := d.list
		if len(list) > maxReported {
			list = list[:maxReported:maxReported]
		}
		d.list = d.list[len(list):]
		d.mu.Unlock()
		if len(list) == 0 {
			return nil
		}
		q := question{Owed: make([]owed, len(list))}
		for i, e := range list {
			e.mu.Lock()
			q.Owed[i] = owed{e.account.name, e.key, e.owed}
			e.owed = amount{}
			e.mu.Unlock()
		}
		all, err := b.owners.Of(ctx, shard, q)
		if err == nil && len(all) == 0 {
			err = errNotAnswered
		}
		for i, e := range list {
			if i < len(all) {
				e.adopt(&all[i])
			} else {
				e.owes(q.Owed[i].amount)
			}
			e.release()
		}
		if err != nil {
			return err
		}
	}
}

// owes adds to the debt to the owner of the entry.
func (e *entry) owes(a amount) {
	if a == (amount{}) {
		return
	}
	e.mu.Lock()
	o := &e.owed
	first := *o == amount{}
	o.Sent += a.Sent
	if a.Unstarts > 0 && a.Day >= o.Day { // of a day before, none counts any more
		if a.Day > o.Day {
			o.Unstarts = 0
		}
		o.Day, o.Unstarts = a.Day, o.Unstarts+a.Unstarts
	}
	if a.Uncalls > 0 {
		o.Calls, o.Uncalls = a.Calls, o.Uncalls+a.Uncalls
	}
	e.mu.Unlock()
	if debts := e.account.book.debts; first && debts != nil { // without other processes, the book is closed
		debts[e.shard].add(e)
	}
}
