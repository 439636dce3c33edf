// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// unnamed reports whether it is for the agent to name the task of a turn.
func (h *HTTP) unnamed(t *agent.Turn) bool {
	return h.namer && (t.From == task.None || t.From == task.AwaitingCompletion)
}

// names holds the turns under way whose tasks the agent is to name, by the name that the gateway made or, where the
// agent begins another task, by that of the last one: who wants to cancel may know no other. The zero value is ready for
// use.
type names struct {
	mu      sync.Mutex
	waiting map[string]*naming
}

// naming is the name of one turn's task.
type naming struct {
	ref  *agent.Ref    // nil if the turn ended without one
	done chan struct{} // closed once ref is known
}

// begin registers a turn. report is to be called with whatever the agent says, end when the turn is over, both by the
// same goroutine.
func (n *names) begin(t *agent.Turn) (report func(*agent.Report), end func()) {
	w, key := &naming{done: make(chan struct{})}, t.Ref.Task
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = make(map[string]*naming)
	}
	n.waiting[key] = w
	over := false
	known := func(ref *agent.Ref) {
		if !over {
			over, w.ref = true, ref
			close(w.done)
		}
	}
	return func(rep *agent.Report) {
			if rep.Ref != nil {
				known(rep.Ref)
			}
		}, func() {
			known(nil)
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.waiting[key] == w {
				delete(n.waiting, key)
			}
		}
}

// of returns a turn with the name that its agent gives the task, waiting for it where it is about to come.
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
		return nil, ended(ctx)
	case <-soon.C:
		return nil, task.Errorf(task.AgentTimeout, "the agent has not said yet what it calls the task")
	}
	if w.ref == nil {
		return t, nil
	}
	return named(t, &agent.Report{Ref: w.ref}), nil
}
