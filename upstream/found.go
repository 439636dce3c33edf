// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// findAgain is how long an agent that could not be found is left alone.
const findAgain = 2 * time.Second

// FoundConfig says how an agent is found and reached. URL and Codec of Agent are not looked at.
type FoundConfig struct {
	Agent    Config
	Discover DiscoverConfig
	// Codecs make the codecs of the dialects that may be found. Next names the dialect to try where an agent does
	// not know the methods of one, empty for none.
	Codecs map[string]func() translate.Client
	Next   map[string]string
}

// FoundAgent is an agent whose dialect is found out when it is first needed. Where the finding was wrong, it tries
// another dialect once: an agent that does not know a method has done nothing. It implements partner.Agent.
type FoundAgent struct {
	config FoundConfig
	log    *slog.Logger

	mu     sync.Mutex
	agent  *HTTP // nil until it is found
	found  Found
	fell   bool      // back on another dialect
	asking *search   // under way
	failed time.Time // when it was last not found
	why    error
}

// search is one attempt to find an agent, which many may wait for.
type search struct{ done chan struct{} }

var _ partner.Agent = (*FoundAgent)(nil)

// NewFound returns an agent that is yet to be found. Nothing is sent before it is used.
func NewFound(config FoundConfig) (*FoundAgent, error) {
	trial := config.Agent
	trial.URL, trial.Codec = config.Discover.URL, nil
	for _, codec := range config.Codecs {
		trial.Codec = codec()
		break
	}
	probe, err := NewHTTP(trial) // finds what is wrong with the configuration
	if err != nil {
		return nil, err
	}
	probe.Close()
	if config.Agent.Slots == nil {
		config.Agent.Slots = NewSlots(defaultSlots)
	}
	a := &FoundAgent{config: config, log: config.Agent.Logger}
	if a.log == nil {
		a.log = slog.Default()
	}
	return a, nil
}

// Close closes the idle connections.
func (a *FoundAgent) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.agent != nil {
		a.agent.Close()
	}
}

// get returns the agent, looking for it if nobody has found it yet.
func (a *FoundAgent) get(ctx context.Context) (*HTTP, error) {
	for {
		a.mu.Lock()
		switch {
		case a.agent != nil:
			defer a.mu.Unlock()
			return a.agent, nil
		case a.asking == nil && time.Since(a.failed) < findAgain:
			defer a.mu.Unlock()
			return nil, a.why
		case a.asking == nil:
			s := &search{make(chan struct{})}
			a.asking = s
			a.mu.Unlock()
			a.look(ctx, s)
		default:
			s := a.asking
			a.mu.Unlock()
			select {
			case <-s.done:
			case <-ctx.Done():
				return nil, ended(ctx)
			}
		}
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
	}
}

// look asks the agent what it speaks, and ends the search, even by a panic.
func (a *FoundAgent) look(ctx context.Context, s *search) {
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asking = nil
		close(s.done)
	}()
	found, err := Discover(ctx, a.config.Discover)
	var agent *HTTP
	if err == nil {
		agent, err = a.speak(found)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil { // else it is the one who asked that has left
			a.failed, a.why = time.Now(), unfound(err)
			a.log.Warn("the agent was not found", "reason", err)
		}
		return
	}
	a.agent, a.found = agent, found
	a.log.Info("the agent was found", "dialect", found.Dialect, "endpoint", found.URL, "why", found.Why)
}

// unfound is what a Leader is told of an agent that was not found: nothing has reached it.
func unfound(err error) error {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return task.Errorf(task.AgentUnavailable, "%s", e.Detail).WithCause(err)
	}
	return task.Errorf(task.AgentUnavailable, "the agent was not found").WithCause(err)
}

// speak returns the agent in a dialect.
func (a *FoundAgent) speak(found Found) (*HTTP, error) {
	codec := a.config.Codecs[found.Dialect]
	if codec == nil {
		return nil, task.Errorf(task.InvalidAgentResponse, "the agent speaks %q, which this gateway does not", found.Dialect)
	}
	config := a.config.Agent
	config.URL, config.Codec = found.URL, codec()
	return NewHTTP(config)
}

// fallBack returns the agent in another dialect, after from did not know a method, or nil where that was tried.
func (a *FoundAgent) fallBack(from *HTTP) *HTTP {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.agent != from {
		return a.agent // another run has done so
	}
	next := a.config.Next[a.found.Dialect]
	if a.fell || next == "" {
		return nil
	}
	found := a.found
	found.Dialect = next
	agent, err := a.speak(found)
	if err != nil {
		return nil
	}
	a.log.Warn("the agent does not know the methods of its dialect; trying another one", "dialect", a.found.Dialect, "next", next)
	a.fell, a.agent, a.found = true, agent, found
	from.Close()
	return agent
}

// unknownTo reports whether an error says that the agent does not know the method.
func unknownTo(err error) bool {
	for err != nil {
		e, ok := errors.AsType[*task.Error](err)
		if !ok {
			return false
		}
		if e.Kind == task.MethodNotFound {
			return true
		}
		err = e.Err
	}
	return false
}

// Run implements partner.Agent.
func (a *FoundAgent) Run(ctx context.Context, t *agent.Turn, stream bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		again := newRetry(a.config.Agent.RetryFor)
		h, err := a.get(ctx)
		waited := false
		for ; err != nil && errors.Is(err, errPassing) && !again.over(err); h, err = a.get(ctx) {
			if waited = true; !yield(agent.Report{Delivery: agent.DeliveryQueued}, nil) {
				return
			}
			again.pause(ctx, spread)
		}
		switch {
		case err != nil:
			yield(agent.Report{}, err)
			return
		case waited && !yield(agent.Report{Delivery: agent.DeliverySending}, nil):
			return
		}
		a.carry(h, yield, func(h *HTTP) iter.Seq2[agent.Report, error] { return h.Run(ctx, t, stream) })
	}
}

// carry yields the reports of h, and those of the agent in another dialect where h does not know a method.
func (a *FoundAgent) carry(h *HTTP, yield yield, reports func(*HTTP) iter.Seq2[agent.Report, error]) {
	for h != nil {
		again := (*HTTP)(nil)
		for rep, err := range reports(h) {
			if err != nil && unknownTo(err) {
				if again = a.fallBack(h); again != nil {
					break
				}
			}
			if !yield(rep, err) {
				return
			}
		}
		h = again
	}
}

// Resume implements partner.Agent. An agent that cannot be found may be restarting, and work on the turn, so it has the
// time of one silence to come back.
func (a *FoundAgent) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		silence := or(a.config.Agent.IdleTimeout, defaultSilence)
		again := newRetry(silence)
		h, err := a.get(ctx)
		for ; err != nil && ctx.Err() == nil && !again.over(err); h, err = a.get(ctx) {
			again.pause(ctx, spread)
		}
		switch {
		case ctx.Err() != nil:
			yield(agent.Report{}, ended(ctx))
		case err != nil: // not AgentUnavailable, which says that the agent has not taken the turn
			yield(agent.Report{}, task.Errorf(task.AgentTimeout, "the agent was not found for %v", silence).WithCause(err))
		default:
			a.carry(h, yield, func(h *HTTP) iter.Seq2[agent.Report, error] { return h.Resume(ctx, t) })
		}
	}
}

// Cancel implements partner.Agent.
func (a *FoundAgent) Cancel(ctx context.Context, t *agent.Turn) (agent.Report, error) {
	h, err := a.get(ctx)
	if err != nil {
		return agent.Report{}, err
	}
	return h.Cancel(ctx, t)
}

// Complete implements partner.Agent.
func (a *FoundAgent) Complete(ctx context.Context, t *agent.Turn) error {
	h, err := a.get(ctx)
	if err != nil {
		return err
	}
	return h.Complete(ctx, t)
}
