// SPDX-License-Identifier: Apache-2.0

// Package partner keeps the life-cycle of tasks: it obeys a Leader's commands, has an agent carry them out,
// keeps the deadlines, and picks up after a crash what was under way. It knows no wire format and no
// transport. Every task is one log of a replay.Store, and the Engine is its only writer.
package partner

import (
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
)

// Config is what one Partner of an engine is.
type Config struct {
	// Name is what the Partner's tasks are filed under: its AIC, or the agent's address where it has none.
	// It must stay the same for as long as the tasks shall be found.
	Name  string
	Agent Agent
	Terms task.Terms // for what a Leader leaves open; none of them may be zero but MaxProductsBytes

	// MaxAwaiting is how long a task may wait for its Leader, whatever that asks for; 0 is no bound.
	MaxAwaiting time.Duration

	MaxEvents int   // events kept per task; beyond it the oldest go, behind a snapshot
	MaxBytes  int64 // bytes kept per task, likewise, and the most that its products may have
	MaxTasks  int   // unfinished tasks per Leader

	// Memory counts what running tasks take of it, and what is read of tasks for callers. What an agent adds to a task
	// that it works on is counted, but never refused. Zero means no bound.
	Memory quota.Budget

	// Stopping is closed when the process is about to end. A start or continue that waits for its turn is then answered
	// with the task as it is, at a moment of its own within Drain, so that callers do not come back all at once.
	Stopping <-chan struct{}
	Drain    time.Duration

	Log *slog.Logger
}

// Partner is one agent under command. Its methods may be called by any number of goroutines at once.
type Partner struct {
	Config
	engine *Engine
}

// Register adds a Partner. The first one of a name, and the first after all of that name were unregistered, picks up the
// turns of that name that no run works on. Several may share a name, as the old and the new configuration do during a reload; the
// last one to come answers for the tasks that nobody else is at work on.
func (e *Engine) Register(c Config) *Partner {
	p := &Partner{Config: c, engine: e}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.partners[c.Name]) == 0 && e.base.Err() == nil {
		defer e.recoverPartner(c.Name)
	}
	e.partners[c.Name] = append(e.partners[c.Name], p)
	e.idle.limit(e.idleLimit())
	return p
}

// Unregister removes the Partner. What it has under way goes on to its end.
func (p *Partner) Unregister() {
	e := p.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.partners[p.Name]
	for i, q := range list {
		if q == p {
			e.partners[p.Name] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(e.partners[p.Name]) == 0 {
		delete(e.partners, p.Name)
	}
	e.idle.limit(e.idleLimit())
}

// current returns the Partner that answers for a name now, or nil.
func (e *Engine) current(name string) *Partner {
	e.mu.RLock()
	defer e.mu.RUnlock()
	list := e.partners[name]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
