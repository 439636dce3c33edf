// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/task"
)

// stateCounts counts the unfinished tasks of all Partners by their states. A task stored before the engine was opened
// counts once it has been read, by recovery at the latest if its Partner is registered. All methods with a log are
// called under the lock of its task.
type stateCounts struct {
	counts [5]atomic.Int64 // by liveState

	// complete is set when every task counts: then mu need not be locked.
	complete atomic.Bool
	mu       sync.Mutex
	found    bool // unread has the tasks stored before
	// unread has the tasks not counted yet, by the hash of the log; read has the counted ones, while unread is being made.
	// Together they take about 20 bytes for each task unfinished at the opening of the engine.
	unread, read map[uint64]struct{}
	seed         maphash.Seed
	limit        int // of unread
}

// maxDoubtful bounds the tasks in stateCounts.unread beside the tasks stored before: beyond it, a task is not counted
// when it is read again after a failed write.
const maxDoubtful = 1 << 16

func newStateCounts() *stateCounts {
	return &stateCounts{
		unread: make(map[uint64]struct{}), read: make(map[uint64]struct{}), seed: maphash.MakeSeed(),
	}
}

// liveState returns the place of a state in stateCounts.counts. None is the state of a task with a pending start. It
// reports false for the state of an ended task.
func liveState(s task.State) (int, bool) {
	switch s {
	case task.None:
		return 0, true
	case task.Accepted:
		return 1, true
	case task.Working:
		return 2, true
	case task.AwaitingInput:
		return 3, true
	case task.AwaitingCompletion:
		return 4, true
	}
	return 0, false
}

func (c *stateCounts) add(s task.State, n int64) {
	if i, ok := liveState(s); ok {
		c.counts[i].Add(n)
	}
}

// move counts an already counted task in another state.
func (c *stateCounts) move(from, to task.State) {
	if from != to {
		c.add(from, -1)
		c.add(to, 1)
	}
}

func (c *stateCounts) hash(log string) uint64 { return maphash.String(c.seed, log) }

// start counts a task about to be started.
func (c *stateCounts) start(log string) {
	if !c.complete.Load() {
		c.mu.Lock()
		delete(c.unread, c.hash(log)) // an earlier start may have failed
		c.mu.Unlock()
	}
	c.add(task.None, 1)
}

// see counts a task read from the store, unless it counts already.
func (c *stateCounts) see(log string, s task.State) {
	if c.complete.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := c.hash(log)
	if !c.found {
		if _, counts := c.read[key]; !counts {
			c.read[key] = struct{}{}
			c.add(s, 1)
		}
		return
	}
	if _, is := c.unread[key]; is {
		delete(c.unread, key)
		c.add(s, 1)
	}
	c.complete.Store(len(c.unread) == 0)
}

// doubt has a task in a state count no more until it is read again, because a write of it failed. The store may have
// made the write all the same.
func (c *stateCounts) doubt(log string, s task.State) {
	c.add(s, -1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.found {
		delete(c.read, c.hash(log))
		return
	}
	if len(c.unread) < c.limit {
		c.complete.Store(false)
		c.unread[c.hash(log)] = struct{}{}
	}
}

// finish sets the logs of the tasks stored before, by their hashes.
func (c *stateCounts) finish(logs map[uint64]struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.read {
		delete(logs, key)
	}
	c.found, c.unread, c.read, c.limit = true, logs, nil, len(logs)+maxDoubtful
	c.complete.Store(len(logs) == 0)
}

// InState returns the number of unfinished tasks of all Partners in a state, None being the state of a pending start. A
// task left by an earlier process counts once it has been read: if its Partner is registered, soon after the
// registration.
func (e *Engine) InState(s task.State) int64 {
	i, ok := liveState(s)
	if !ok {
		return 0
	}
	return max(e.states.counts[i].Load(), 0)
}
