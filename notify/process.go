// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/replay"
)

// Process has the things shared by the engines of a process: the Scheduler, with the bounds of all attempts, and the
// configuration. Its methods may be called by any number of goroutines at once.
type Process struct {
	log       *slog.Logger
	scheduler *schedule.Scheduler
	results   *results

	mu      sync.Mutex
	config  *Config // in force; nil until Configure
	engines map[*Engine]struct{}
}

// NewProcess returns a Process without engines. The logger is for the time before Configure; nil for none.
func NewProcess(log *slog.Logger) *Process { return newProcess(log, schedule.Limits{}) }

// newProcess is NewProcess with limits, for tests.
func newProcess(log *slog.Logger, limits schedule.Limits) *Process {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Process{
		log: log, scheduler: schedule.New(limits), results: newResults(), engines: make(map[*Engine]struct{}),
	}
}

// Open makes an engine over a store. The store stays the caller's and is closed after the engine. Nothing is delivered
// before Configure.
func (p *Process) Open(ctx context.Context, store replay.Store) (*Engine, error) {
	return p.open(ctx, store, nil)
}

// open is Open with a network, for tests.
func (p *Process) open(ctx context.Context, store replay.Store, trip http.RoundTripper) (*Engine, error) {
	e, err := open(ctx, store, p, trip)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.engines[e] = struct{}{}
	if p.config != nil {
		e.Configure(*p.config)
	}
	return e, nil
}

// Configure puts a configuration in force for all engines, and for those opened later.
func (p *Process) Configure(c Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config = &c
	for e := range p.engines {
		e.Configure(c)
	}
}

// closed removes a closed engine.
func (p *Process) closed(e *Engine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.engines, e)
}
