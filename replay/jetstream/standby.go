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
	// standbyShare is the pause after a page of many heads, in times of the page.
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

	begun    bool          // something was read before the claim
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
		b.begun, st.standby = true, b
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

// run reads heads until ctx ends: the old ones a page at a time, then every second those written since.
func (b *standby) run(ctx context.Context) {
	wait := standbyPoll
	for {
		rest := standbyPoll
		more, err := b.read(ctx)
		if err == nil && !more {
			err = b.keepExact(ctx)
		}
		b.logs.Store(int64(b.index.Len()))
		switch {
		case err != nil:
			wait = min(2*wait, standbyBackOff)
			rest = wait
		case more:
			rest = 0
		default:
			wait = standbyPoll
		}
		if pause(ctx, rest) != nil {
			return
		}
	}
}

// read reads a page of heads, and reports whether there may be more. Of all standbys of a process, one reads at a time,
// and rests after a page of many: so a process that begins to stand by takes a part of what the servers can do.
func (b *standby) read(ctx context.Context) (more bool, err error) {
	select {
	case b.st.filling <- struct{}{}:
		defer func() { <-b.st.filling }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	began, size := time.Now(), 0
	found, err := b.st.direct(ctx, b.tail+1, b.st.prefix+"*.h", pageMessages, pageBytes)
	if err != nil {
		return false, err
	}
	b.begun = true
	for _, m := range found {
		if err := b.next(ctx, m); err != nil {
			return false, err
		}
		size += len(m.data)
	}
	if len(found) < pageMessages/2 && size < pageBytes/2 {
		return false, nil
	}
	return true, pause(ctx, min(standbyShare*time.Since(began), standbyPoll))
}

// keepExact finds out whether the index is exact, and makes it so if it can.
func (b *standby) keepExact(ctx context.Context) error {
	if err := b.verify(ctx); err != nil || b.exact || time.Since(b.compared) < b.wait {
		return err
	}
	b.compared = time.Now()
	marked, mark, err := b.st.marks(ctx)
	if err != nil {
		return err
	}
	known := max(marked, mark)
	if err := b.readOn(ctx, known); err != nil {
		return err
	}
	if err := b.compare(ctx, known); err != nil {
		return err
	}
	// The empty heads up to the mark were read, or their logs compared.
	floor := max(b.tail, known)
	b.exact, b.floor, b.raised = true, [2]uint64{floor, floor}, time.Now()
	err = b.verify(ctx)
	if b.wait = min(max(2*b.wait, standbyCompare), 16*standbyCompare); b.exact {
		b.wait = standbyCompare
	}
	return err
}

// verify finds out whether an empty head may have been purged before it was read.
func (b *standby) verify(ctx context.Context) error {
	marked, mark, err := b.st.marks(ctx)
	if err != nil {
		return err
	}
	if marked == 0 || max(marked, mark) > b.floor[0] {
		if b.exact = false; marked == 0 {
			clear(b.dropped) // no mark comes after which to forget them; the next owner looks for them, see Store.tidy
		}
		return nil
	}
	for name, seq := range b.dropped {
		if seq <= mark {
			delete(b.dropped, name)
		}
	}
	if time.Since(b.raised) >= standbyFloor {
		b.floor, b.raised = [2]uint64{b.floor[1], max(b.floor[1], b.tail)}, time.Now()
	}
	return nil
}
