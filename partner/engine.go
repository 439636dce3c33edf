// SPDX-License-Identifier: Apache-2.0

// Package partner keeps the life-cycle of tasks: it obeys a Leader's commands, has an agent carry them out,
// keeps the deadlines, and picks up after a crash what was under way. It knows no wire format and no
// transport. Every task is one log of a replay.Store, and the Engine is its only writer.
package partner

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
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

	active *keylock.Map[activeTask] // by log; a task that rests is not in memory at all

	mu       sync.RWMutex          // held for reading by whoever adds to work, which must not happen once Close waits
	partners map[string][]*Partner // by name; the last one registered is the present one

	open  openTasks
	alarm *replay.Alarm
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
	e.active = keylock.New(func(log string) *activeTask { return &activeTask{engine: e, log: log} })
	if err := e.open.count(ctx, store); err != nil {
		e.stop()
		return nil, err
	}
	e.alarm = replay.NewAlarm(o.wall)
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

// spawn lets f run in a goroutine of the engine's, until the engine closes.
func (e *Engine) spawn(f func(context.Context)) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.base.Err() == nil {
		e.work.Go(func() { f(e.base) })
	}
}

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
		e.work.Go(func() { e.recoverAll(c.Name) })
	}
	e.partners[c.Name] = append(e.partners[c.Name], p)
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

// Class is the class of the logs of tasks in the store. An Engine looks at no others, so that writers of other
// classes may share its store.
const Class = 't'

// A log's name is, after the class, the Partner's, the Leader's and the task's, so that two Leaders using the same
// taskId never meet. None of the three can hold the separator.
const separator = "\x00"

func logName(partner, leader, taskID string) string {
	return string(Class) + partner + separator + leader + separator + taskID
}

func splitLogName(log string) (partner, leader, taskID string) {
	partner, rest, _ := strings.Cut(strings.TrimPrefix(log, string(Class)), separator)
	leader, taskID, _ = strings.Cut(rest, separator)
	return partner, leader, taskID
}

// acquire returns the one live of a log, which the caller must release.
func (e *Engine) acquire(log string) *activeTask { return e.active.Acquire(log) }

func (tk *activeTask) release() {
	if tk.engine.active.Release(tk.log) {
		tk.memory.Release()
	}
}

// openTasks counts the unfinished tasks of every Leader of every Partner.
type openTasks struct {
	mu sync.Mutex
	n  map[string]int // by ownerOf
}

// count fills the counters from the store, where every unfinished task has a Wake.
func (o *openTasks) count(ctx context.Context, store replay.Store) error {
	o.n = make(map[string]int)
	for w, err := range store.Due(ctx, Class, replay.Recover, replay.EndOfTime) {
		if err != nil {
			return err
		}
		o.n[ownerOf(w.Log)]++
	}
	return nil
}

// ownerOf returns whose limits a log counts against: its Partner and Leader, all unverified Leaders being one.
func ownerOf(log string) string {
	partner, leader, _ := splitLogName(log)
	if key := quota.Key(leader); key != leader {
		return string(Class) + partner + separator + key + separator
	}
	return log[:strings.LastIndex(log, separator)+1]
}

// add counts one more task, unless there are max already; max 0 is no limit.
func (o *openTasks) add(log string, max int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	owner := ownerOf(log)
	if max > 0 && o.n[owner] >= max {
		return false
	}
	o.n[owner]++
	return true
}

func (o *openTasks) done(log string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	owner := ownerOf(log)
	if o.n[owner]--; o.n[owner] <= 0 {
		delete(o.n, owner)
	}
}
