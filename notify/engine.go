// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify/delivery"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Config is the configuration of an Engine, to be changed while it is open. With the zero Config nothing is delivered,
// because no dialect is known.
type Config struct {
	Attempts    int           // of a notification before it is a dead letter; default 10, taking about a day
	Timeout     time.Duration // of one attempt, from the lookup of the host to the end of the answer; default 15s
	Concurrency int           // attempts at the same time, without attempts of more than a second; default 64

	// KeepBodies has the bodies of the last attempts kept in memory, of requests and of answers, at most 4 KiB of each
	// and 16 MiB together. Default: no body is kept.
	KeepBodies bool

	Egress   *egress.Policy // the addresses allowed; default: public ones, by https
	Keys     sign.Keys      // sign notifications; default: they are not signed
	Resolver *net.Resolver  // default: net.DefaultResolver
	TLS      *tls.Config    // default: the system's roots
	// Certificates are shown to the receivers of CertificateFor on their request for a client certificate, by Partner.
	// Others are shown none.
	Certificates   map[string]ClientCertificate
	CertificateFor []egress.Server

	// Dialects returns the dialect of the notifications of a webhook of a Partner's task, by its Dialect and Confirm; nil
	// if there is no such dialect. The notifications of such a webhook wait.
	Dialects func(w *task.Webhook, partner string) translate.Notifier
	// Stopped reports whether nothing is sent for a Leader of a Partner now. Its notifications wait. nil: all are sent.
	Stopped func(partner, leader string) bool

	TracerProvider trace.TracerProvider // traces attempts; default: they are not traced
	Log            *slog.Logger         // default: the one given to NewProcess
}

// ClientCertificate returns the certificate for one connection.
type ClientCertificate = delivery.ClientCertificate

// Defaults of Config.
const (
	DefaultAttempts    = 10
	DefaultTimeout     = 15 * time.Second
	DefaultConcurrency = 64
)

// Engine keeps the webhooks of all tasks of one store, a shard's, and notifies them. It outlives any configuration, as
// partner.Engine does. Its methods may be called by any number of goroutines at once.
//
// A change goes one way: Notify appends it to the outbox, the outbox offers it to the scheduler, the scheduler has the
// deliverer make an attempt, and the deliverer stores the outcome in the outbox. The scanner and the reconciler bring
// into this path the changes left out of it by a crash, a failure or a full memory.
type Engine struct {
	process *Process
	store   replay.Store
	config  atomic.Pointer[Config] // nil until Configure

	ctx    context.Context // ends when the engine closes
	cancel context.CancelFunc
	work   sync.WaitGroup // the reconciler and the scanner

	outboxes   *outboxes
	queue      *schedule.Queue
	sender     *delivery.Sender
	deliverer  *deliverer
	reconciler *reconciler
	scanner    *scanner

	mu       sync.Mutex // guards the fields below, and additions to work
	closed   bool
	scanning bool
}

// open makes an engine over a store. It sends over trip, or over connections of its own if trip is nil.
func open(ctx context.Context, store replay.Store, p *Process, trip http.RoundTripper) (*Engine, error) {
	e := &Engine{process: p, store: store}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	due := replay.NewDueScanner(store, logname.Outbox, time.Now)
	e.sender = delivery.New(e.ctx, trip)
	e.queue = p.scheduler.Open(schedule.Config{
		Run:   func(a *schedule.Attempt) { e.deliverer.run(a) },
		Leave: due.Leave, Wake: due.ScanBy, Log: e.logger,
	})
	var err error
	e.outboxes, err = openOutboxes(ctx, store, e.queue, e.logger)
	if err == nil {
		err = e.loadDisabled(ctx)
	}
	if err != nil {
		e.cancel()
		e.queue.Close()
		return nil, err
	}
	e.deliverer = &deliverer{
		outboxes: e.outboxes, queue: e.queue, sender: e.sender, results: p.results, config: e.config.Load, ctx: e.ctx,
		mayAct: replay.WhenHeld(store), unknown: make(map[string]bool),
	}
	e.scanner = &scanner{outboxes: e.outboxes, queue: e.queue, due: due, log: e.logger}
	e.reconciler = &reconciler{
		outboxes: e.outboxes, reopened: e.queue.Resume, log: e.logger, requested: make(chan struct{}, 1),
	}
	e.work.Go(func() { e.reconciler.run(e.ctx) })
	return e, nil
}

// Configure puts a configuration in force for all attempts that begin from now on. Attempts in flight end with the
// configuration of their beginning.
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
		c.Log = e.process.log
	}
	if c.Dialects == nil {
		c.Dialects = func(*task.Webhook, string) translate.Notifier { return nil }
	}
	if c.Stopped == nil {
		c.Stopped = func(string, string) bool { return false }
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.sender.Configure(delivery.Config{
		Timeout: c.Timeout, Connections: 4 * c.Concurrency, PerEndpoint: schedule.InFlightPerEndpoint,
		KeepBodies: c.KeepBodies,
		Egress:     c.Egress, Keys: c.Keys, Resolver: c.Resolver, TLS: c.TLS,
		Certificates: c.Certificates, CertificateFor: c.CertificateFor,
		TracerProvider: c.TracerProvider, Log: c.Log,
	})
	e.config.Store(&c)
	e.process.results.configure(c.KeepBodies)
	e.deliverer.configured()
	e.queue.Start(c.Concurrency)
	if !e.scanning {
		e.scanning = true
		e.work.Go(func() { e.scanner.run(e.ctx) })
	}
	e.scanner.due.ScanBy(time.Now())
}

// Close stops all work and waits for it. Attempts in flight are canceled, and made again by the next engine opening the
// store, under the same webhook-id. Changes given to Notify meanwhile are stored.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.cancel()
	e.mu.Unlock()
	e.queue.Close()
	e.work.Wait()
	e.sender.Close()
	e.process.closed(e)
}

// logger is the present configuration's, or the one of NewProcess.
func (e *Engine) logger() *slog.Logger {
	if c := e.config.Load(); c != nil {
		return c.Log
	}
	return e.process.log
}

// stopped reports whether nothing is sent for a Leader of a Partner now.
func (e *Engine) stopped(partner, leader string) bool {
	c := e.config.Load()
	return c != nil && c.Stopped(partner, leader)
}

// background returns the logger for an error of work in the background. An unavailable store logs this itself, once.
func background(log *slog.Logger, err error) *slog.Logger {
	if errors.Is(err, replay.ErrUnavailable) {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// Counts are the counts of an engine's work since Open, and of its next work.
type Counts struct {
	Delivered, Failed uint64 // attempts
	Dead              uint64 // notifications turned into dead letters, or dropped from a full outbox
	InFlight          int    // attempts
	// Pending are the stored notifications neither delivered nor dead, without those of disabled webhooks, and Oldest is
	// the time the oldest of them has waited, less up to 10 s. The notifications left by an earlier process count when
	// their outbox has been read, soon after Open.
	Pending int
	Oldest  time.Duration
	Ready   int // deliveries waiting in memory for their turn
	Open    int // breakers of endpoints; an endpoint has one for each Leader
}

// Engines are the engines of a process's own shards.
type Engines []*Engine

// Counts returns the counts of now.
func (e Engines) Counts() (all Counts) {
	for _, of := range e {
		c := of.counts()
		all.Delivered += c.Delivered
		all.Failed += c.Failed
		all.Dead += c.Dead
		all.Pending += c.Pending
		all.Oldest = max(all.Oldest, c.Oldest)
	}
	if len(e) > 0 {
		now := e[0].process.scheduler.Counts()
		all.InFlight, all.Ready, all.Open = now.InFlight, now.Ready, now.Open
	}
	return all
}

// counts returns the counts of this engine alone.
func (e *Engine) counts() Counts {
	d := e.deliverer
	pending, oldest := e.outboxes.backlog.now(time.Now())
	return Counts{
		Pending: pending, Oldest: oldest,
		Delivered: d.delivered.Load(), Failed: d.failed.Load(), Dead: d.dead.Load() + e.outboxes.dropped.Load(),
	}
}
