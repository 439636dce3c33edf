// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/task"
)

// stateCounts counts the unfinished tasks of all Partners by their states. A task that the store had when the engine
// was opened counts when it has been read, by recovery at the latest if its Partner is registered. All methods that
// name a log are called under the lock of its task.
type stateCounts struct {
	counts [5]atomic.Int64 // by liveState

	// complete says that every task counts, so that mu need not be locked.
	complete atomic.Bool
	mu       sync.Mutex
	found    bool // unread has the tasks that the store had
	// unread has the tasks that do not count yet, by the hash of the log; read those that count, while unread is being
	// made. Together they take about 20 bytes for each task that was unfinished when the engine was opened.
	unread, read map[uint64]struct{}
	seed         maphash.Seed
	limit        int // of unread
}

// maxDoubtful bounds the tasks in stateCounts.unread beside those that the store had: beyond it, a task whose write has
// failed is not counted when it is read again.
const maxDoubtful = 1 << 16

func newStateCounts() *stateCounts {
	return &stateCounts{
		unread: make(map[uint64]struct{}), read: make(map[uint64]struct{}), seed: maphash.MakeSeed(),
	}
}

// liveState returns the place of a state in stateCounts.counts. None is that of a task whose start is pending. It
// reports false for a state in which a task has ended.
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

// move counts a task that counts already in another state.
func (c *stateCounts) move(from, to task.State) {
	if from != to {
		c.add(from, -1)
		c.add(to, 1)
	}
}

func (c *stateCounts) hash(log string) uint64 { return maphash.String(c.seed, log) }

// start counts a task that is about to be started.
func (c *stateCounts) start(log string) {
	if !c.complete.Load() {
		c.mu.Lock()
		delete(c.unread, c.hash(log)) // an earlier start may have failed
		c.mu.Unlock()
	}
	c.add(task.None, 1)
}

// see counts a task that was read from the store, unless it counts already.
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

// doubt has a task in a state count no more until it is read again, because a write of it failed, which the store may
// have made all the same.
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

// finish sets which logs the store had, by their hashes.
func (c *stateCounts) finish(logs map[uint64]struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.read {
		delete(logs, key)
	}
	c.found, c.unread, c.read, c.limit = true, logs, nil, len(logs)+maxDoubtful
	c.complete.Store(len(logs) == 0)
}

// InState returns how many unfinished tasks of all Partners are in a state, None being that of a start that is pending.
// A task that an earlier process left counts when it has been read: if its Partner is registered, soon after that.
func (e *Engine) InState(s task.State) int64 {
	i, ok := liveState(s)
	if !ok {
		return 0
	}
	return max(e.states.counts[i].Load(), 0)
}
