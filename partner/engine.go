// SPDX-License-Identifier: Apache-2.0

// Package partner keeps the life-cycle of tasks: it obeys a Leader's commands, has an agent carry them out,
// keeps the deadlines, and picks up after a crash what was under way. It knows no wire format and no
// transport. Every task is one log of a replay.Store, and the Engine is its only writer.
package partner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

// Engine is the life-cycle of all tasks of one store. It outlives any configuration: Partners come and go
// with theirs, while their tasks, runs and deadlines stay. Its methods may be called by any number of
// goroutines at once.
type Engine struct {
	store   replay.Store
	watcher Watcher
	tracing trace.TracerProvider // nil for none
	wall    func() time.Time     // the clock that deadlines go by

	base context.Context // ends when the engine closes; every run lives in it
	stop context.CancelFunc
	work *workers // runs, the deadline keeper, recoveries

	active *keylock.Map[activeTask] // by log: the tasks that are in use
	idle   *idleTasks               // those that are not, and are kept in memory for the next use

	mu       sync.RWMutex          // held for reading by whoever adds to work, which must not happen once Close waits
	partners map[string][]*Partner // by name; the last one registered is the present one

	open      openTasks
	found     found // under mu, once the engine is open
	deadlines *replay.DueScanner
}

// Options are what an Engine uses beside its store. They stay the caller's, to be closed after the engine.
type Options struct {
	Watcher Watcher // nil for none
	// Tracing makes the spans of turns that are not a part of a caller's trace, such as those that are resumed after a
	// restart. Nil makes none.
	Tracing trace.TracerProvider

	wall func() time.Time // the clock that deadlines go by; nil is time.Now
}

// Open makes an engine over a store, which stays the caller's, to be closed after the engine.
func Open(ctx context.Context, store replay.Store, o Options) (*Engine, error) {
	if o.wall == nil {
		o.wall = time.Now
	}
	e := &Engine{
		store:    store,
		watcher:  o.Watcher,
		tracing:  o.Tracing,
		wall:     o.wall,
		partners: make(map[string][]*Partner),
	}
	e.base, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.work = newWorkers(e.base.Done())
	e.found = found{logs: make(map[string][]replay.DueLog), registered: make(map[string]bool)}
	e.idle = newIdleTasks()
	e.active = keylock.New(func(log string) *activeTask {
		if tk := e.idle.take(log); tk != nil {
			return tk
		}
		return &activeTask{engine: e, log: log}
	})
	for due, err := range e.unfinished() {
		if err != nil {
			e.stop()
			return nil, err
		}
		e.open.add(due.Log, 0)
		e.found.remember(due)
	}
	e.deadlines = replay.NewDueScanner(store, logname.Task, o.wall)
	e.work.Go(e.keepDeadlines)
	e.work.Go(e.recoverReopened)
	return e, nil
}

// Close stops all work and waits for it. Runs that were under way stay unfinished in their logs and are
// picked up by the next engine that opens the store.
func (e *Engine) Close() {
	e.mu.Lock()
	e.stop()
	e.mu.Unlock()
	e.work.Wait()
}

// logger returns the logger of a Partner, whichever, and nil where none is registered.
func (e *Engine) logger() *slog.Logger {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for _, list := range e.partners {
		return list[len(list)-1].Log
	}
	return nil
}

// spawn lets f run in a goroutine of the engine's, until the engine closes.
func (e *Engine) spawn(f func(context.Context)) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.base.Err() == nil {
		e.work.Go(func() { f(e.base) })
	}
}
