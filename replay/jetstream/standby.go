// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// standbyPoll is the time from one look for new heads to the next one.
	standbyPoll = time.Second
	// standbyBackOff is the longest wait while the servers do not answer.
	standbyBackOff = 15 * time.Second
	// standbyShare is the pause after a page of old heads, in times of the page: so a process that begins to stand by
	// takes a part of what the servers can do.
	standbyShare = 3
	// standbyCompare is the least time between two comparisons with the leader; it is doubled up to 16 times while the
	// index cannot be kept exact, because the owner's version writes no marks.
	standbyCompare = time.Minute
	// standbyFloor is the least time until what was read counts as read: see standby.floor.
	standbyFloor = 10 * time.Second
)

// standby keeps the heads of a shard of another node, so that a claim need not read them all.
type standby struct {
	*catalog
	// exact is set if the index has the logs there are at the tail, and no others: no empty head after the floor was
	// purged before it was read.
	exact bool
	// floor has the tails of some time ago, and of a later time. A deposed leader may say for a while that less was
	// purged, so what is purged is compared with the first one.
	floor  [2]uint64
	raised time.Time // when floor was changed

	begun    bool          // the old heads are being read, or were
	compared time.Time     // when the index was compared with the leader last
	wait     time.Duration // from then to the next time, if needed
	logs     atomic.Int64

	stop  context.CancelFunc // nil if the goroutine was not started
	ended chan struct{}
}

// StandBy has this process keep the heads of some shards that others own, and of no others. So a claim of such a shard
// reads only what was written since. It returns when nothing is read any more for other shards.
func (s *Streams) StandBy(shards []int) {
	wanted := make([]bool, len(s.shards))
	for _, i := range shards {
		wanted[i] = true
	}
	for i, st := range s.shards {
		st.standBy(wanted[i])
	}
}

// standbyLogs returns the number of logs of other nodes' shards whose heads this process keeps.
func (s *Streams) standbyLogs() (n int) {
	for _, st := range s.shards {
		st.mu.Lock()
		if st.standby != nil {
			n += int(st.standby.logs.Load())
		}
		st.mu.Unlock()
	}
	return n
}

// standBy begins or ends the standby of the shard. There is none while this process opens the store, or has it open.
func (st *stream) standBy(wanted bool) {
	st.mu.Lock()
	st.wanted = wanted
	var ends *standby
	switch {
	case !wanted:
		ends, st.standby = st.standby, nil
	case st.standby == nil && st.local == nil && !st.opening:
		st.standby = &standby{catalog: newCatalog(st)}
		st.standby.spawn()
	}
	st.mu.Unlock()
	if ends != nil {
		ends.end()
	}
}

// takeStandby takes the standby of the shard, for its store; a new one if there is none.
func (st *stream) takeStandby() *standby {
	st.mu.Lock()
	b := st.standby
	st.standby, st.opening = nil, true
	st.mu.Unlock()
	if b == nil {
		return &standby{catalog: newCatalog(st)}
	}
	b.end()
	return b
}

// giveBack is called when the store of a taken standby was not opened. What was read need not be read again.
func (st *stream) giveBack(b *standby) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.opening = false
	if st.wanted && st.local == nil {
		st.standby = b
		b.spawn()
	}
}

// spawn starts the goroutine.
func (b *standby) spawn() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop, b.ended = stop, make(chan struct{})
	go func() {
		defer close(b.ended)
		b.run(ctx)
	}()
}

// end ends the goroutine, if it was started, and waits for it.
func (b *standby) end() {
	if b.stop != nil {
		b.stop()
		<-b.ended
	}
}

// run reads heads until ctx ends: those written since, every second, and the old ones beside that.
func (b *standby) run(ctx context.Context) {
	wait := standbyPoll
	var polled time.Time
	for {
		var err error
		if time.Since(polled) >= standbyPoll {
			polled = time.Now()
			err = b.poll(ctx)
		} else {
			err = b.readOld(ctx)
		}
		b.logs.Store(int64(b.index.Len()))
		rest := time.Duration(0)
		switch {
		case err != nil:
			wait = min(2*wait, standbyBackOff)
			rest, polled = wait, time.Time{}
		case b.fill == b.start:
			wait = standbyPoll
			rest = standbyPoll - time.Since(polled)
		}
		if pause(ctx, max(rest, 0)) != nil {
			return
		}
	}
}

// poll reads the heads written since.
func (b *standby) poll(ctx context.Context) error {
	if !b.begun {
		last, err := b.st.lastSequence(ctx)
		if err != nil {
			return err
		}
		b.fill, b.start, b.tail, b.begun = b.tail, last, last, true
	}
	for {
		found, err := b.st.direct(ctx, b.tail+1, b.st.prefix+"*.h", pageMessages, pageBytes)
		if err != nil {
			return err
		}
		for _, m := range found {
			if err := b.take(ctx, m); err != nil {
				return err
			}
			b.tail = m.seq
		}
		if len(found) == 0 {
			break
		}
	}
	if err := b.verify(ctx); err != nil || b.exact || b.fill < b.start || time.Since(b.compared) < b.wait {
		return err
	}
	b.compared = time.Now()
	if err := b.readOn(ctx); err != nil {
		return err
	}
	if err := b.compare(ctx); err != nil {
		return err
	}
	b.exact, b.floor, b.raised = true, [2]uint64{b.tail, b.tail}, time.Now()
	err := b.verify(ctx)
	if b.wait = min(max(2*b.wait, standbyCompare), 16*standbyCompare); b.exact {
		b.wait = standbyCompare
	}
	return err
}

// verify finds out whether an empty head may have been purged before it was read.
func (b *standby) verify(ctx context.Context) error {
	_, owner, err := b.st.readOwner(ctx)
	if err != nil {
		return err
	}
	mark, err := b.st.mark(ctx)
	if err != nil {
		return err
	}
	if owner.Marked == 0 || max(owner.Marked, mark) > b.floor[0] {
		b.exact = false
		return nil
	}
	if b.fill == b.start {
		for name, seq := range b.dropped {
			if seq <= mark {
				delete(b.dropped, name)
			}
		}
	}
	if time.Since(b.raised) >= standbyFloor {
		b.floor, b.raised = [2]uint64{b.floor[1], b.tail}, time.Now()
	}
	return nil
}

// readOld reads a page of the old heads. Of all standbys of a process, one reads at a time.
func (b *standby) readOld(ctx context.Context) error {
	select {
	case b.st.filling <- struct{}{}:
		defer func() { <-b.st.filling }()
	case <-time.After(standbyPoll):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	found, err := b.st.nextHeads(ctx, b.fill)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		b.fill = b.start
	}
	for _, m := range found {
		if m.seq > b.start {
			b.fill = b.start
			break
		}
		if err := b.take(ctx, m); err != nil {
			return err
		}
		b.fill = m.seq
	}
	return pause(ctx, min(standbyShare*time.Since(began), standbyPoll))
}
