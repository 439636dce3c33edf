// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// leastUnderway is the number of batches that may be under way in any case.
	leastUnderway = 2
	// longUnderway is the time after which a batch holds up no others: the servers of its stream may have no leader.
	longUnderway = 100 * time.Millisecond
)

// underway bounds the batches of all shards of this process that are under way at once, to half as many as there are
// shards, and to two at least. One that takes long does not count. While the appends of a shard wait, more of them
// gather: a batch costs the servers several times as much as one message more in it. Each shard begins in its turn. The
// methods may be called by any number of goroutines at once.
type underway struct {
	mu      sync.Mutex
	shards  int             // written by this process
	batches int             // under way
	waiting []chan struct{} // of the shards that wait, the first one first; closed when the batch may begin
}

// add changes the number of shards.
func (u *underway) add(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.shards += n
	u.admit()
}

// begin waits until a batch may begin. The caller calls end, perhaps several times, once it is no longer under way. The
// error is the one of ctx.
func (u *underway) begin(ctx context.Context) (end func(), err error) {
	turn := make(chan struct{})
	u.mu.Lock()
	u.waiting = append(u.waiting, turn)
	u.admit()
	u.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		if !u.leave(turn) {
			u.end()
		}
		return nil, ctx.Err()
	}
	once := sync.OnceFunc(u.end)
	late := time.AfterFunc(longUnderway, once)
	return func() { late.Stop(); once() }, nil
}

func (u *underway) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.batches--
	u.admit()
}

// leave takes a turn out of those waiting. It reports false if its batch may begin already.
func (u *underway) leave(turn chan struct{}) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.waiting, turn)
	if i >= 0 {
		u.waiting = slices.Delete(u.waiting, i, i+1)
	}
	return i >= 0
}

// admit has those begin who may. u.mu is held.
func (u *underway) admit() {
	most := max(leastUnderway, u.shards/2)
	for len(u.waiting) > 0 && u.batches < most {
		close(u.waiting[0])
		u.waiting = slices.Delete(u.waiting, 0, 1)
		u.batches++
	}
}
