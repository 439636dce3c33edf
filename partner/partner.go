// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"cmp"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
)

// Config configures a Partner.
type Config struct {
	// Name is a part of the names of the Partner's tasks in the store, so it must not change: its AIC, or the agent's
	// address if it has none.
	Name  string
	Agent Agent
	Terms task.Terms // of tasks whose Leader does not set them; only MaxProductsBytes may be zero

	// MaxAwaiting bounds the wait of a task for its Leader, whatever the Leader asks for; 0 is no bound.
	MaxAwaiting time.Duration

	MaxEvents int   // events kept of a task; the oldest are replaced by a snapshot
	MaxBytes  int64 // bytes kept of a task, likewise; also a bound of its products
	MaxTasks  int   // unfinished tasks of a Leader

	// FirstReport is the time for which a stream, or a waiting start, waits for the first report before it begins without
	// one. Until then, the agent may still reject the task. Default: a quarter of a second.
	FirstReport time.Duration

	// Memory counts the memory of running tasks and of tasks read for callers. An agent's additions to a task in its work
	// are counted, but never refused. Zero means no bound.
	Memory limit.Budget

	// Stopping is closed when the process is about to end. Starts and continues waiting for their turns are then answered
	// with the task as it is, at random times within Drain, so that callers do not all come back at once. From then on, a
	// turn does not fail if its agent cannot be reached: the next engine resumes it.
	Stopping <-chan struct{}
	Drain    time.Duration

	// Recovered is called once, when the turns without a run have been resumed, with their number: 0 if another Partner of
	// the name has done so. It must not wait. nil: nothing is called.
	Recovered func(turns int)

	// Meter counts the outcomes of the tasks. Default: one of its own.
	Meter *Meter
	Log   *slog.Logger
}

// Partner is one agent. Leaders command its tasks. Its methods may be called by any number of goroutines at once.
type Partner struct {
	Config
	engine *Engine
	gone   atomic.Bool // it was unregistered
}

// Register adds a Partner. The first one of a name, and the first one after all of that name were unregistered, resumes
// the turns of that name without a run. Several may share a name, as the old and the new configuration do during a
// reload; the one registered last is responsible for all tasks without a run at another one.
func (e *Engine) Register(c Config) *Partner {
	c.FirstReport = cmp.Or(c.FirstReport, 250*time.Millisecond)
	if c.Meter == nil {
		c.Meter = new(Meter)
	}
	p := &Partner{Config: c, engine: e}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.base.Err() != nil:
	case len(e.partners[c.Name]) == 0:
		defer e.recoverPartner(p)
	case p.Recovered != nil:
		defer e.work.Go(func() { p.Recovered(0) })
	}
	e.partners[c.Name] = append(e.partners[c.Name], p)
	e.limitIdle()
	return p
}

// Unregister removes the Partner. Its runs continue to their end. Commands still reaching it are carried out by the
// Partner of its name registered last, if there is one.
func (p *Partner) Unregister() {
	e := p.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	p.gone.Store(true)
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
	e.limitIdle()
}

// inForce returns the Partner in charge of a command sent to p. After a reload a server may still take a request on a
// connection of before: the replaced configuration does not begin a turn with it.
func (p *Partner) inForce() *Partner {
	if p.gone.Load() {
		if now := p.engine.current(p.Name); now != nil {
			return now
		}
	}
	return p
}

// current returns the Partner registered last under a name, or nil.
func (e *Engine) current(name string) *Partner {
	e.mu.RLock()
	defer e.mu.RUnlock()
	list := e.partners[name]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
