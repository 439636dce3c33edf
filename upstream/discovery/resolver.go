// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// searchPause is the time after a failed search before the agent is searched again.
const searchPause = 2 * time.Second

// ResolverConfig is the configuration of a Resolver. All but Finder and Logger are required.
type ResolverConfig struct {
	Discover Config
	// Finder finds an agent without a URL, in place of Discover; nil for one with a URL.
	Finder   Finder
	Dialects map[string]Dialect // the possible ones, by name
	// Open returns the transport to the agent at a URL in a dialect. It sends nothing.
	Open func(url string, codec translate.Client) (upstream.Transport, error)

	Logger *slog.Logger // default: slog.Default
}

// Finder finds an agent that may move.
type Finder interface {
	// Find returns the agent's dialect, and its present URL.
	Find(ctx context.Context) (Found, error)
	// Fresh reports whether the last result of Find still counts. It does not wait.
	Fresh() bool
}

// Dialect is a possible dialect of an agent.
type Dialect struct {
	Codec func() translate.Client
	Older string // the dialect to try if an agent does not know the methods of this one; empty for none
}

// Resolver finds out an agent's dialect when it is first needed. If the finding was wrong, it offers another dialect
// once: an agent not knowing a method has done nothing. It implements upstream.Resolver.
type Resolver struct {
	config ResolverConfig
	log    *slog.Logger

	mu       sync.Mutex
	known    *known // nil until the agent is found
	fellBack bool   // known is of another dialect than the found one
	search   *flight[*known]
	failed   time.Time // when the last search failed
	why      error
	logged   string // the text of why as logged last
}

// known is a found agent.
type known struct {
	Found
	endpoint *upstream.Endpoint
}

var _ upstream.Resolver = (*Resolver)(nil)

// NewResolver returns the resolver of an agent yet to be found. Nothing is sent before it is used.
func NewResolver(config ResolverConfig) (*Resolver, error) {
	url := config.Discover.URL
	if config.Finder != nil {
		url = "https://localhost/"
	}
	for _, dialect := range config.Dialects { // any, to find errors of the configuration
		transport, err := config.Open(url, dialect.Codec())
		if err != nil {
			return nil, err
		}
		transport.Close()
		break
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Resolver{config: config, log: config.Logger}, nil
}

// Close implements upstream.Resolver.
func (r *Resolver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known != nil {
		r.known.endpoint.Close()
	}
}

// Endpoint implements upstream.Resolver. Callers at the same time share one search. It is stopped when the last of them
// leaves.
func (r *Resolver) Endpoint(ctx context.Context) (*upstream.Endpoint, error) {
	r.mu.Lock()
	switch {
	case r.isFound():
		defer r.mu.Unlock()
		return r.known.endpoint, nil
	case r.search == nil && time.Since(r.failed) < searchPause:
		defer r.mu.Unlock()
		return nil, r.why
	case r.search == nil:
		r.search = startFlight(r.find, r.searchEnded)
	}
	search := r.search
	search.waiting++
	r.mu.Unlock()
	defer r.leave(search)
	found, err := search.wait(ctx)
	if err != nil {
		return nil, err
	}
	return found.endpoint, nil
}

// Known implements upstream.Resolver.
func (r *Resolver) Known() *upstream.Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isFound() {
		return nil
	}
	return r.known.endpoint
}

// isFound reports whether the agent's present place is known. r.mu is held.
func (r *Resolver) isFound() bool {
	return r.known != nil && (r.config.Finder == nil || r.config.Finder.Fresh())
}

// leave is called by a caller no longer waiting for a search. It stops the search after its last caller.
func (r *Resolver) leave(search *flight[*known]) {
	r.mu.Lock()
	search.waiting--
	unwanted := search.waiting == 0 && r.search == search
	if unwanted {
		r.search = nil
	}
	r.mu.Unlock()
	if unwanted {
		search.stop()
	}
}

// find asks the agent for its dialect.
func (r *Resolver) find(ctx context.Context) (*known, error) {
	if r.config.Finder == nil {
		found, err := Discover(ctx, r.config.Discover)
		if err != nil {
			return nil, err
		}
		return r.speak(found)
	}
	found, err := r.config.Finder.Find(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	same := r.known
	r.mu.Unlock()
	if same != nil && same.Dialect == found.Dialect && same.URL == found.URL {
		return same, nil
	}
	return r.speak(found)
}

// searchEnded stores the result of a search.
func (r *Resolver) searchEnded(search *flight[*known]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.search != search {
		return // it was stopped
	}
	r.search = nil
	if _, ok := search.err.(*callPanic); ok {
		return
	}
	if err := search.err; err != nil {
		level := slog.LevelWarn
		if why := err.Error(); why == r.logged {
			level = slog.LevelDebug // each turn waiting for the agent has it searched for again
		} else {
			r.logged = why
		}
		r.log.Log(context.Background(), level, "the agent was not found", "reason", err)
		search.err = unavailable(err)
		r.failed, r.why = time.Now(), search.err
		return
	}
	r.logged = ""
	if r.known == search.result {
		return
	}
	if r.known != nil {
		r.known.endpoint.Close()
	}
	r.known, r.fellBack = search.result, false
	r.log.Info("the agent was found", "dialect", r.known.Dialect, "endpoint", r.known.URL, "why", r.known.Why)
}

// unavailable is a Leader's error for an agent not found: nothing has reached it.
func unavailable(err error) error {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return task.Errorf(task.AgentUnavailable, "%s", e.Detail).WithCause(err)
	}
	return task.Errorf(task.AgentUnavailable, "the agent was not found").WithCause(err)
}

// speak returns the agent in a dialect.
func (r *Resolver) speak(found Found) (*known, error) {
	dialect, ok := r.config.Dialects[found.Dialect]
	if !ok {
		return nil, task.Errorf(task.InvalidAgentResponse, "the agent speaks %q, which this gateway does not",
			found.Dialect)
	}
	client := dialect.Codec()
	transport, err := r.config.Open(found.URL, client)
	if err != nil {
		return nil, err
	}
	return &known{found, upstream.NewEndpoint(client, transport)}, nil
}

// Fallback implements upstream.Resolver.
func (r *Resolver) Fallback(from *upstream.Endpoint) *upstream.Endpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known.endpoint != from {
		return r.known.endpoint // another turn has fallen back
	}
	next := r.config.Dialects[r.known.Dialect].Older
	if r.fellBack || next == "" {
		return nil
	}
	found := r.known.Found
	found.Dialect = next
	other, err := r.speak(found)
	if err != nil {
		return nil
	}
	// What to do: pin the dialect in `next`.
	r.log.Warn("the agent does not know the methods of its dialect; trying another one",
		"dialect", r.known.Dialect, "next", next)
	r.fellBack, r.known = true, other
	from.Close()
	return other.endpoint
}
