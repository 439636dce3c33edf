// SPDX-License-Identifier: Apache-2.0

package locate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry"
)

const (
	maxAge   = time.Minute      // for which an answer counts, where no feed is heard
	pause    = 10 * time.Second // after which sources are asked again that have not answered
	maxKept  = 4096             // agents
	maxStale = 24 * time.Hour   // for which an agent counts while no source answers
)

// Finder finds agents. It may be used by any number of goroutines at once.
type Finder struct {
	sources []Source
	fixed   map[string]Agent

	mu   sync.Mutex
	kept map[string]found
}

// found is what a source has said.
type found struct {
	agent    Agent
	source   *Source
	revision uint64    // by the feed of the source
	heard    bool      // the feed knew the agent
	doubted  bool      // no source has answered since
	at       time.Time // when the agent was found
	until    time.Time // when the source is asked again, without a feed
}

// New returns a Finder. The agents of fixed are those that no source knows, by their AICs.
func New(sources []Source, fixed map[string]Agent) *Finder {
	return &Finder{sources: sources, fixed: fixed, kept: make(map[string]found)}
}

// Fresh reports whether what was last found of an agent still counts.
func (f *Finder) Fresh(aic string) bool {
	f.mu.Lock()
	k, is := f.kept[aic]
	f.mu.Unlock()
	return is && k.fresh(aic)
}

func (k *found) fresh(aic string) bool {
	if k.source != nil && k.source.Standing != nil {
		s := k.source.Standing(aic)
		switch {
		case s.Known && !s.Active:
			return false
		case k.doubted:
		case s.Known != k.heard, s.Revision != k.revision:
			return false
		case k.heard && time.Since(s.Answered) < registry.Fresh:
			return true
		}
	}
	return time.Now().Before(k.until)
}

// Find finds an agent by its AIC, which must be in its canonical form. The error wraps one *registry.Error for each
// source that was asked, in their order.
func (f *Finder) Find(ctx context.Context, aic string) (Agent, error) {
	f.mu.Lock()
	before, is := f.kept[aic]
	f.mu.Unlock()
	if is && before.fresh(aic) {
		return before.agent, nil
	}
	var failed []error
	silent := false // a source has not answered, which may know the agent
	for i := range f.sources {
		k, err := ask(ctx, &f.sources[i], aic)
		switch {
		case err == nil:
			f.keep(aic, k)
			return k.agent, nil
		case ctx.Err() != nil:
			return Agent{}, ctx.Err()
		}
		if registry.Is(err, registry.Inactive) {
			f.forget(aic)
			return Agent{}, fmt.Errorf("the agent %s: %s: %w", aic, f.sources[i].Name, err)
		}
		failed = append(failed, fmt.Errorf("%s: %w", f.sources[i].Name, err))
		silent = silent || registry.IsTransient(err)
	}
	if a, is := f.fixed[aic]; is {
		f.keep(aic, found{agent: a, at: time.Now(), until: time.Now().Add(maxAge)})
		return a, nil
	}
	if silent && is && time.Since(before.at) < maxStale {
		before.until, before.doubted = time.Now().Add(pause), true
		f.keep(aic, before)
		return before.agent, nil
	}
	f.forget(aic)
	if len(failed) == 0 {
		return Agent{}, fmt.Errorf("the agent %s: %w", aic, &registry.Error{Kind: registry.NotFound, By: "the option find"})
	}
	return Agent{}, fmt.Errorf("the agent %s: %w", aic, errors.Join(failed...))
}

// ask asks one source. Its errors name it.
func ask(ctx context.Context, s *Source, aic string) (k found, err error) {
	defer func() {
		if e, is := errors.AsType[*registry.Error](err); is && s.kind != "" {
			e.By = s.kind
		}
	}()
	k = found{source: s, at: time.Now(), until: time.Now().Add(maxAge)}
	if s.Standing != nil {
		// Before the ACS is asked for: what changes meanwhile is then another revision.
		standing := s.Standing(aic)
		k.revision, k.heard = standing.Revision, standing.Known
		if standing.Known && !standing.Active && time.Since(standing.Answered) < registry.Fresh {
			return k, &registry.Error{Kind: registry.Inactive}
		}
	}
	acs, err := s.ACS(ctx, aic)
	if err != nil {
		return k, err
	}
	if k.agent, err = Read(aic, acs); err != nil {
		return k, err
	}
	k.agent.Source = s.Name
	return k, nil
}

func (f *Finder) keep(aic string, k found) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kept) >= maxKept {
		clear(f.kept) // a caller that needs one asks again
	}
	f.kept[aic] = k
}

func (f *Finder) forget(aic string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.kept, aic)
}
