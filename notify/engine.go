// SPDX-License-Identifier: Apache-2.0

// Package notify tells webhooks of every change of a task's state: at least once, in order for each task and
// webhook, however long the receiver is down and whatever crashes.
//
// What is to be told of a task is a log of its own in the same store, the task's outbox: one record for each
// change of state, and in its note the webhooks, each with a cursor. The outbox is written right after the
// task's log, and compared with it after a crash; so nothing that is in the task's log is forgotten, and a
// notification does not depend on how long the task's log is kept.
//
// The store is the queue. Memory holds a bounded number of deliveries that are about to be made; what does not
// fit stays due in the store until there is room.
package notify

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"hash/maphash"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/notify/delivery"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Config is what may change while an Engine is open. The zero Config delivers nothing, for want of dialects.
type Config struct {
	Attempts    int           // of a delivery before it is dead; default 10, which takes about a day
	Timeout     time.Duration // of one attempt, from the look-up of the host to the end of the answer; default 15s
	Concurrency int           // attempts at the same time; default 64. Those that take more than a second count apart

	Egress   *egress.Policy // what may be reached; nil is the zero Guard: all that is public, by https
	Keys     sign.Keys      // that sign; without any, notifications are not signed
	Resolver *net.Resolver
	TLS      *tls.Config // default: the system's roots

	// Dialects returns the dialect in which a webhook of a Partner's task is notified, by its Dialect and Confirm; nil
	// where there is no such dialect. The notifications of such a webhook wait.
	Dialects func(w *task.Webhook, partner string) translate.Notifier

	// TracerProvider traces deliveries. Default: they are not traced.
	TracerProvider trace.TracerProvider

	Log *slog.Logger // default: the one that Open was given
}

// Defaults of Config.
const (
	DefaultAttempts    = 10
	DefaultTimeout     = 15 * time.Second
	DefaultConcurrency = 64
)

// Engine keeps the webhooks of all tasks of one store and tells them. It outlives any configuration, as
// partner.Engine does. Its methods may be called by any number of goroutines at once.
type Engine struct {
	store  replay.Store
	opened *slog.Logger // what Open was given

	base context.Context // ends when the engine closes; every attempt lives in it
	stop context.CancelFunc
	work sync.WaitGroup // attempts, the keeper, the catching up, dials

	seed  maphash.Seed
	boxes *keylock.Map[box] // by name

	// epoch changes when changes may have passed without being told: at Open, and when the store would not take
	// one. An outbox that bears another one is compared with its task's log before anything is added to it.
	epoch atomic.Pointer[string]
	lag   chan struct{} // holds one: outboxes must be compared with their tasks

	outboxes outboxes
	setup    atomic.Pointer[Config] // nil until Configure
	sender   *delivery.Sender
	sched    schedule
	alarm    *replay.Alarm
	counts   counts

	mu      sync.Mutex // guards what follows, and whoever adds to work
	closed  bool
	keeping bool            // the keeper runs
	strange map[string]bool // dialects that were warned of
}

// counts are what Counts returns, as they grow.
type counts struct{ delivered, failed, dead atomic.Uint64 }

// Open makes an engine over a store, which stays the caller's, to be closed after the engine. Nothing is
// delivered before Configure.
func Open(ctx context.Context, store replay.Store, log *slog.Logger) (*Engine, error) {
	return open(ctx, store, log, nil)
}

// open is Open with what replaces the network in tests.
func open(ctx context.Context, store replay.Store, log *slog.Logger, trip http.RoundTripper) (*Engine, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		store:   store,
		opened:  log,
		seed:    maphash.MakeSeed(),
		lag:     make(chan struct{}, 1),
		strange: make(map[string]bool),
	}
	e.base, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	e.sender = delivery.New(e.base, trip)
	e.boxes = keylock.New(func(name string) *box { return &box{engine: e, name: name} })
	e.alarm = replay.NewAlarm(time.Now)
	e.newEpoch()
	e.sched.init(e)
	err := e.outboxes.count(ctx, store)
	if err == nil {
		err = e.sched.loadDisabled(ctx, store)
	}
	if err != nil {
		e.stop()
		return nil, err
	}
	e.work.Go(e.keepUp)
	return e, nil
}

func (e *Engine) newEpoch() {
	epoch := rand.Text()[:12]
	e.epoch.Store(&epoch)
}

// Configure puts a configuration in force, for all attempts that begin from now on. Attempts under way end
// under the one that they began with.
func (e *Engine) Configure(c Config) {
	if c.Attempts <= 0 {
		c.Attempts = DefaultAttempts
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Concurrency <= 0 {
		c.Concurrency = DefaultConcurrency
	}
	if c.Egress == nil {
		c.Egress = new(egress.Policy)
	}
	if c.Log == nil {
		c.Log = e.opened
	}
	if c.Dialects == nil {
		c.Dialects = func(*task.Webhook, string) translate.Notifier { return nil }
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.sender.Configure(delivery.Config{
		Timeout: c.Timeout, Connections: 4 * c.Concurrency, PerEndpoint: flyingProven,
		Egress: c.Egress, Keys: c.Keys, Resolver: c.Resolver, TLS: c.TLS, TracerProvider: c.TracerProvider, Log: c.Log,
	})
	clear(e.strange)
	e.setup.Store(&c)
	e.sched.start(c.Concurrency)
	if !e.keeping {
		e.keeping = true
		e.work.Go(e.keep)
	}
	e.alarm.At(time.Now())
}

// Close stops all work and waits for it. Attempts under way are broken off and made again by the next engine
// that opens the store, under the same webhook-id. What is told meanwhile is stored.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.stop()
	e.mu.Unlock()
	e.sched.halt()
	e.work.Wait()
	e.sender.Close()
}

// logger is the present configuration's, or the one of Open.
func (e *Engine) logger() *slog.Logger {
	if s := e.setup.Load(); s != nil {
		return s.Log
	}
	return e.opened
}

// loggerOf is logger for an error that was met in the background. That the store is unavailable, it says itself, once.
func (e *Engine) loggerOf(err error) *slog.Logger {
	if errors.Is(err, replay.ErrUnavailable) {
		return slog.New(slog.DiscardHandler)
	}
	return e.logger()
}

// Counts says what an engine has done since Open, and what it is about to do.
type Counts struct {
	Delivered, Failed uint64 // attempts
	Dead              uint64 // deliveries that were given up
	InFlight, Ready   int    // attempts under way; deliveries that wait in memory for their turn
}

// Counts returns them.
func (e *Engine) Counts() Counts {
	c := Counts{Delivered: e.counts.delivered.Load(), Failed: e.counts.failed.Load(), Dead: e.counts.dead.Load()}
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()
	c.InFlight, c.Ready = e.sched.fast+e.sched.slow, e.sched.ready
	return c
}
