// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Config is the configuration of an Agent. Resolver is required; zero means the default of everything else.
type Config struct {
	Resolver Resolver

	IdleTimeout time.Duration // the agent's longest silence, or time without a change when asked; default 5m
	// StallTimeout is the longest standstill of a task after its agent was gone before it counts as lost, and the longest
	// time for an agent to deny the task by an ambiguous error. Default: 30s, or IdleTimeout if that is less.
	StallTimeout time.Duration
	RetryFor     time.Duration // the time to send again a turn not received by the agent; 0 for none
	Slots        *Slots        // for the requests under way; default: 1024

	// ResendAfter is the time, after a broken connection, to ask the agent for the turn before the message is sent again:
	// it may have read the message and not know the task yet. 0 is to ask once.
	ResendAfter time.Duration
	Resend      Resend // whether it is sent again then, or the turn fails

	// Listener receives the agent's unasked messages; nil if the agent has no address for them. A transport goes first if
	// it is a Listener.
	Listener Listener
	// Streaming says whether turns ask for streams. Default: StreamsAuto.
	Streaming Streaming
	// Streams reports whether the agent's card does not claim streams, and the time of the card's last change. Nil is for
	// an agent without a card.
	Streams func(ctx context.Context) (none bool, since time.Time)
	// Lost has f called, at most once, when no turn may go on at the agent any more, with the error of the running ones.
	// stop ends this. Nil: it is never known.
	Lost func(f func(*task.Error)) (stop func())
	// Secrets are hidden in the agent's words about failures.
	Secrets *Secrets
	// Traffic counts the requests by their outcome. Default: one not shared with other Agents.
	Traffic *Traffic

	Logger *slog.Logger // default: slog.Default
}

const (
	defaultIdleTimeout  = 5 * time.Minute
	defaultStallTimeout = 30 * time.Second
	defaultSlots        = 1024
)

// A Resolver finds the dialect and transport of an agent. Its methods may be called by any number of goroutines at
// once.
type Resolver interface {
	// Endpoint returns the agent's endpoint, and finds it if it is not known yet. An error with the reason Unreachable may
	// pass.
	Endpoint(ctx context.Context) (*Endpoint, error)

	// Known returns the agent's endpoint; nil while it is not known yet. It does not wait.
	Known() *Endpoint

	// Fallback returns another endpoint for an agent that does not know a method of from, and so has done nothing. It
	// returns nil if there is none to try.
	Fallback(from *Endpoint) *Endpoint

	// Close closes the idle connections.
	Close()
}

// Endpoint is an agent speaking one dialect over one transport. It is the Resolver of an agent of a known dialect.
type Endpoint struct {
	codec     translate.Client
	transport Transport

	facets     translate.Facets // of codec
	taken      taken
	streamless atomic.Bool // the agent has denied having streams
	streams    streams

	sessionless atomic.Bool // the agent takes no names of sessions made by the gateway
	sessions    taken       // the agent's own names for sessions

	given taken                     // the names of sessions in messages to the agent of a SessionTeller
	gave  func(session string) bool // whether it was given
}

// NewEndpoint returns the endpoint of an agent. The endpoint closes the transport.
func NewEndpoint(codec translate.Client, transport Transport) *Endpoint {
	e := &Endpoint{codec: codec, transport: transport, facets: translate.FacetsOf(codec)}
	if e.facets.SessionTeller != nil {
		e.gave = e.given.has
	}
	return e
}

// Endpoint implements Resolver.
func (e *Endpoint) Endpoint(context.Context) (*Endpoint, error) { return e, nil }

// Known implements Resolver.
func (e *Endpoint) Known() *Endpoint { return e }

// Fallback implements Resolver: the dialect is known.
func (e *Endpoint) Fallback(*Endpoint) *Endpoint { return nil }

// Close implements Resolver.
func (e *Endpoint) Close() { e.transport.Close() }

// unnamed reports whether it is for the agent to name the task of a turn.
func (e *Endpoint) unnamed(t *agent.Turn) bool {
	return e.facets.Namer != nil && (t.From == task.None || t.From == task.AwaitingCompletion)
}

// Agent carries turns out. It implements partner.Agent.
type Agent struct {
	config Config
	log    *slog.Logger
	jitter func(time.Duration) time.Duration // of repetitions
	nextID func() string                     // of requests
	names  names
}

var _ partner.Agent = (*Agent)(nil)

// New returns an agent. Nothing is sent before it is used.
func New(config Config) *Agent {
	if config.IdleTimeout <= 0 {
		config.IdleTimeout = defaultIdleTimeout
	}
	if config.StallTimeout <= 0 {
		config.StallTimeout = min(defaultStallTimeout, config.IdleTimeout)
	}
	if config.Slots == nil {
		config.Slots = NewSlots(defaultSlots, 0)
	}
	if config.Traffic == nil {
		config.Traffic = new(Traffic)
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Agent{config: config, log: config.Logger, jitter: spread, nextID: requestIDs()}
}

// spread returns d, a quarter shorter or longer at random: requests failing together are not to be repeated together.
func spread(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1)
}

// Close closes the idle connections. Running turns are ended by their contexts.
func (a *Agent) Close() { a.config.Resolver.Close() }

// Admit implements partner.Admitter.
func (a *Agent) Admit(leader string) error { return a.config.Slots.admit(leader) }

// CanResume implements partner.Resumer.
func (a *Agent) CanResume() bool {
	e := a.config.Resolver.Known()
	return e == nil || e.facets.Getter != nil || e.facets.Resubscriber != nil || e.facets.Resender != nil
}

// Run implements partner.Agent.
func (a *Agent) Run(ctx context.Context, t *agent.Turn, stream bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		ctx, end := a.untilLost(ctx, nil)
		defer end()
		r := run{Agent: a, ctx: ctx, turn: t, yield: yield}
		defer r.unname()
		r.expectName()
		r.finish(r.carryOut(stream))
	}
}

// Resume implements partner.Agent.
func (a *Agent) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		ctx, end := a.untilLost(ctx, nil)
		defer end()
		r := run{Agent: a, ctx: ctx, turn: t, yield: yield}
		defer r.unname()
		r.expectName()
		r.finish(r.carryOn())
	}
}

// untilLost returns the context of a turn. It ends also when no turn may go on at the agent any more; i, if not nil,
// ends then, too.
func (a *Agent) untilLost(ctx context.Context, i *Interrupt) (_ context.Context, end func()) {
	if a.config.Lost == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := a.config.Lost(func(why *task.Error) {
		if cancel(why); i != nil {
			i.End()
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Ended is the error of a request given up because ctx is done.
func Ended(ctx context.Context) *task.Error {
	cause := context.Cause(ctx)
	if why, is := errors.AsType[*task.Error](cause); is {
		return why
	}
	if errors.Is(cause, context.DeadlineExceeded) {
		return task.Errorf(task.AgentTimeout, "the agent did not answer in time").WithCause(cause)
	}
	return task.Errorf(task.Internal, "the gateway no longer waits for the agent").WithCause(cause)
}
