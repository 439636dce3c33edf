// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"cmp"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// idleShare is the part of a Partner's memory limit that idle tasks may take beside it: one in so many bytes.
	idleShare = 16
	// defaultIdle is how many bytes of memory idle tasks may take where no Partner has a memory limit.
	defaultIdle = 16 << 20
	// idleOverhead is about how many bytes an idle task takes beside its content.
	idleOverhead = 1 << 10
)

// idleTasks keeps settled tasks in memory that are not in use, so that the next command need not load and fold their
// logs again. Beyond a bound in bytes, the least recently used are dropped. The content of an idle task is used only if
// the head of its log is still the same (activeTask.reuse): another engine may have written to the log, or the store
// may have dropped it.
type idleTasks struct {
	mu    sync.Mutex
	tasks *simplelru.LRU[string, *activeTask] // by log; evicts by bytes, and never by their number
	bytes int64
	max   int64
}

func newIdleTasks() *idleTasks {
	c := &idleTasks{max: defaultIdle}
	removed := func(_ string, tk *activeTask) { c.bytes -= tk.idleSize }
	c.tasks, _ = simplelru.NewLRU(math.MaxInt, removed) // fails for a size below 1 only
	return c
}

// take removes the task of a log, and returns nil where there is none.
func (c *idleTasks) take(log string) *activeTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	tk, ok := c.tasks.Peek(log)
	if ok {
		c.tasks.Remove(log)
	}
	return tk
}

// put adds a task that nothing uses any more, if its next command may find it as it is. It may have stayed idle, where
// it was only looked at.
func (c *idleTasks) put(tk *activeTask) {
	if !tk.loaded && !tk.idle || !tk.exists || tk.run != nil || tk.meta.Pending != nil ||
		!tk.fold.Status().State.Settled() {
		return
	}
	tk.loaded, tk.idle, tk.leased = false, true, false
	tk.idleSize = idleOverhead + tk.fold.Size() + int64(len(tk.log)+2*len(tk.logState.metadata))
	c.mu.Lock()
	defer c.mu.Unlock()
	if tk.engine.base.Err() != nil {
		return
	}
	c.tasks.Remove(tk.log) // that of an earlier use which ended at the same time
	c.bytes += tk.idleSize
	c.tasks.Add(tk.log, tk)
	c.evict()
}

// forget drops the tasks of an engine, which is closed.
func (c *idleTasks) forget(e *Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, log := range c.tasks.Keys() {
		if tk, _ := c.tasks.Peek(log); tk.engine == e {
			c.tasks.Remove(log)
		}
	}
}

// limit sets the most bytes that the tasks may take.
func (c *idleTasks) limit(max int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.max = max
	c.evict()
}

func (c *idleTasks) evict() {
	for c.bytes > c.max {
		c.tasks.RemoveOldest()
	}
}

// limitIdle sets how many bytes of memory idle tasks may take: a share of the largest memory limit of any Partner. It
// changes nothing where none is registered, as when the shard is lost: the engines of other shards have them all.
// e.mu is held.
func (e *Engine) limitIdle() {
	if len(e.partners) == 0 {
		return
	}
	var most int64
	for _, list := range e.partners {
		for _, p := range list {
			if p.Memory.Counter != nil {
				most = max(most, p.Memory.Limits.Total)
			}
		}
	}
	e.process.idle.limit(cmp.Or(most/idleShare, defaultIdle))
}

// reuse makes an idle task one that is loaded, if head, which is that of its log now, proves that nothing was written
// since. Otherwise the task must be loaded again. tk.mu is held.
func (tk *activeTask) reuse(head *replay.Head) {
	state := &tk.logState
	switch {
	case !tk.idle:
	case head.Revision == state.revision && head.Last == state.last && bytes.Equal(head.Metadata, state.metadata):
		tk.idle, tk.loaded = false, true
		state.lost, state.cut = head.Lost, head.Cut
		tk.lease().Take(tk.size)
	default:
		tk.invalidate()
	}
}
