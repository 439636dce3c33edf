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
	// idleShare is the idle tasks' share of a Partner's memory limit, taken beside it: one in so many bytes.
	idleShare = 16
	// defaultIdle is the most bytes of memory for idle tasks if no Partner has a memory limit.
	defaultIdle = 16 << 20
	// idleOverhead is about the bytes of an idle task beside its content.
	idleOverhead = 1 << 10
)

// idleTasks keeps settled tasks in memory while they are not in use. So the next command need not load and fold their
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

// take removes the task of a log, and returns nil if there is none.
func (c *idleTasks) take(log string) *activeTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	tk, ok := c.tasks.Peek(log)
	if ok {
		c.tasks.Remove(log)
	}
	return tk
}

// put adds a task out of use, if its next command may find it as it is. It may have stayed idle, if it was only looked
// at.
func (c *idleTasks) put(tk *activeTask) {
	if !tk.loaded && !tk.idle || !tk.exists || tk.run != nil || tk.meta.Pending != nil ||
		!tk.fold.Status().State.Settled() {
		return
	}
	tk.loaded, tk.idle, tk.leased = false, true, false
	tk.fold.Rest()
	tk.idleSize = idleOverhead + tk.fold.Size() + int64(len(tk.log)+2*len(tk.logState.metadata))
	c.mu.Lock()
	defer c.mu.Unlock()
	if tk.engine.base.Err() != nil {
		return
	}
	c.tasks.Remove(tk.log) // the one of an earlier use that ended at the same time
	c.bytes += tk.idleSize
	c.tasks.Add(tk.log, tk)
	c.evict()
}

// forget drops the tasks of a closed engine.
func (c *idleTasks) forget(e *Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, log := range c.tasks.Keys() {
		if tk, _ := c.tasks.Peek(log); tk.engine == e {
			c.tasks.Remove(log)
		}
	}
}

// limit sets the most bytes of the tasks.
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

// limitIdle sets the most bytes of memory for idle tasks: a share of the largest memory limit of any Partner. It
// changes nothing if none is registered, as when the shard is lost: the engines of other shards have them all. e.mu is
// held.
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

// reuse makes an idle task a loaded one, if head, the present head of its log, proves that nothing was written since.
// Otherwise the task must be loaded again. tk.mu is held.
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
