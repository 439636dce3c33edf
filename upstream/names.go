// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// names holds the current turns whose tasks the agent will name, or may name if it is yet to be found. The key is the
// gateway's name or, if the agent begins another task, the name of the last task: a cancel may know no other name. A
// turn is registered before its agent is looked for, and a cancel looks for the turn after it has found the agent, so
// it never misses one. The zero value is ready for use. Its methods may be called by any number of goroutines at once.
type names struct {
	mu      sync.Mutex
	waiting map[string]*naming
}

// naming is the name of one turn's task. set and names.end are called by the goroutine of the turn.
type naming struct {
	key  string
	ref  *agent.Ref    // nil if the turn ended without one
	done chan struct{} // closed once ref does not change any more
	over bool          // done is closed
}

// begin registers a turn. The caller must end the naming.
func (n *names) begin(t *agent.Turn) *naming {
	w := &naming{key: t.Ref.Task, done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = make(map[string]*naming)
	}
	n.waiting[w.key] = w
	return w
}

// set sets the name, unless it is set already; nil means that the agent gives no name, or none in this run.
func (w *naming) set(ref *agent.Ref) {
	if !w.over {
		w.over, w.ref = true, ref
		close(w.done)
	}
}

func (n *names) end(w *naming) {
	w.set(nil)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[w.key] == w {
		delete(n.waiting, w.key)
	}
}

// has reports whether the turn's task is yet to be named, or was named in the running turn.
func (n *names) has(t *agent.Turn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiting[t.Ref.Task] != nil
}

// of returns a turn with its agent's name for the task, and waits for the name for a short time.
func (n *names) of(ctx context.Context, t *agent.Turn) (*agent.Turn, error) {
	n.mu.Lock()
	w := n.waiting[t.Ref.Task]
	n.mu.Unlock()
	if w == nil {
		return t, nil
	}
	soon := time.NewTimer(cancelTimeout)
	defer soon.Stop()
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil, Ended(ctx)
	case <-soon.C:
		return nil, task.Errorf(task.AgentTimeout, "the agent has not named the task yet")
	}
	if w.ref == nil {
		return t, nil
	}
	return named(t, &agent.Report{Ref: w.ref}), nil
}
