// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Engine is the life-cycle of all tasks of one store, the store of a shard. It outlives configurations: Partners are
// registered and unregistered with theirs, while tasks, runs and deadlines stay. Its methods may be called by any
// number of goroutines at once.
type Engine struct {
	store   replay.Store
	mayAct  func(context.Context) error // see replay.WhenHeld
	watcher Watcher
	tracing trace.TracerProvider // nil for none
	wall    func() time.Time     // the clock of deadlines

	base context.Context // of every run; ends when the engine closes
	stop context.CancelFunc
	work *workers // runs, the deadline keeper, recoveries

	process *Process
	active  *keylock.Map[activeTask] // by log: the tasks in use

	sessions *sessions
	lists    *lists
	secret   secret

	mu       sync.RWMutex          // read-locked to add to work: nothing is added once Close waits
	partners map[string][]*Partner // by name; the one registered last is the present one

	open      *openTasks
	states    *stateCounts
	found     found // under mu, once open.counted is closed
	deadlines *replay.DueScanner
}

// Engines are the engines of the shards owned by a process.
type Engines []*Engine

// Running returns the number of turns in work at their agents now.
func (e Engines) Running() (n int) {
	for _, of := range e {
		n += of.running()
	}
	return n
}

// Unfinished returns the number of unfinished tasks in the stores, of all Partners, as far as they are counted.
func (e Engines) Unfinished() (n int64) {
	for _, of := range e {
		n += of.Unfinished()
	}
	return n
}

// InState returns the number of unfinished tasks of all Partners in a state, None being the state of a pending start.
func (e Engines) InState(s task.State) (n int64) {
	for _, of := range e {
		n += of.InState(s)
	}
	return n
}

// Options are the means of an Engine beside its store. They stay the caller's, to be closed after the engine.
type Options struct {
	Watcher Watcher  // nil for none
	Process *Process // default: one of its own
	// Tracing makes the spans of turns outside of a caller's trace, for example of turns resumed after a restart. Nil
	// makes none.
	Tracing trace.TracerProvider

	wall func() time.Time // the clock of deadlines; nil is time.Now
}

// Process is the common part of the engines of a process: the memory bound of settled tasks, the state of a drain, the
// followers of changes, and the Acceptors. Its methods may be called by any number of goroutines at once.
type Process struct {
	idle     *idleTasks // the tasks not in use, but still in memory
	tails    tails
	draining draining

	acceptors atomic.Pointer[[]Acceptor] // nil before the first
}

// NewProcess returns a Process. It takes new tasks.
func NewProcess() *Process { return &Process{idle: newIdleTasks()} }

// Open opens an engine over a store. The caller closes the store after the engine.
func Open(ctx context.Context, store replay.Store, o Options) (*Engine, error) {
	if o.wall == nil {
		o.wall = time.Now
	}
	if o.Process == nil {
		o.Process = NewProcess()
	}
	e := &Engine{
		process:  o.Process,
		store:    store,
		mayAct:   replay.WhenHeld(store),
		watcher:  o.Watcher,
		tracing:  o.Tracing,
		wall:     o.wall,
		partners: make(map[string][]*Partner),
		states:   newStateCounts(),
	}
	e.base, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.work, e.open = newWorkers(e.base.Done()), newOpenTasks(e.base.Done())
	e.sessions, e.lists = newSessions(), newLists()
	e.active = keylock.New(func(entry *keylock.Entry[activeTask]) *activeTask {
		tk := e.process.idle.take(entry.Key)
		if tk == nil {
			tk = &activeTask{engine: e, log: entry.Key}
		}
		tk.entry = entry
		return tk
	})
	if _, err := e.secret.read(ctx, store); err != nil {
		return nil, err
	}
	_, _ = e.secret.get(ctx, store) // else with the first task: the store may be full
	began := make(chan error, 1)
	e.work.Go(func() { e.countUnfinished(began) })
	if err := <-began; err != nil {
		e.stop()
		e.work.Wait()
		return nil, err
	}
	e.deadlines = replay.NewDueScanner(store, logname.Task, o.wall)
	e.work.Go(e.keepDeadlines)
	e.work.Go(e.recoverReopened)
	return e, nil
}

// Close stops all work and waits for it. Turns under way stay unfinished in their logs: the next engine over the store
// resumes them.
func (e *Engine) Close() {
	e.mu.Lock()
	e.stop()
	e.mu.Unlock()
	for _, tk := range e.active.Used() {
		tk.mu.Lock()
		if tk.run != nil {
			tk.run.stop() // an inline one does not notice the end of its context
		}
		tk.mu.Unlock()
	}
	e.work.Wait()
	e.process.idle.forget(e)
}

// logger returns the logger of any Partner, and nil if none is registered.
func (e *Engine) logger() *slog.Logger {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, list := range e.partners {
		return list[len(list)-1].Log
	}
	return nil
}

// spawn calls f in a goroutine of the engine, with a context ending when the engine closes. A closed engine does not
// call it.
func (e *Engine) spawn(f func(context.Context)) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.base.Err() == nil {
		e.work.Go(func() { f(e.base) })
	}
}
