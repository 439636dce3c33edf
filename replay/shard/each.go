// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Each is one E for each shard owned by this process: an engine over its store, or the registration of a configuration
// with one. Its methods may be called by any number of goroutines at once.
type Each[E any] struct {
	set    *Set
	opens  func(ctx context.Context, shard int, store replay.Store) (*E, error)
	closes func(*E)

	opened []*E                // by shard; under the mutex of the slot
	found  []atomic.Pointer[E] // by shard
}

// Open opens one E over each shard owned by this process now, and over each one gained later. An error comes from a
// shard owned now; then none is open. An E is closed when its shard is lost, before everything opened before it, and
// when the Each or the Set is closed.
func Open[E any](
	s *Set, open func(ctx context.Context, shard int, store replay.Store) (*E, error), closes func(*E),
) (*Each[E], error) {
	e := &Each[E]{set: s, opens: open, closes: closes,
		opened: make([]*E, s.Count()), found: make([]atomic.Pointer[E], s.Count())}
	if err := s.attach(e); err != nil {
		return nil, err
	}
	return e, nil
}

// Close closes all. Of still returns them, for late calls.
func (e *Each[E]) Close() { e.set.detach(e) }

// Count returns the number of shards in all processes.
func (e *Each[E]) Count() int { return len(e.found) }

// Of returns the E of a shard; nil if another process owns it.
func (e *Each[E]) Of(shard int) *E { return e.found[shard].Load() }

// All yields the Es of the shards owned by this process now.
func (e *Each[E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		for i := range e.found {
			if of := e.Of(i); of != nil && !yield(of) {
				return
			}
		}
	}
}

func (e *Each[E]) open(ctx context.Context, shard int, store replay.Store) error {
	of, err := e.opens(ctx, shard, store)
	if err == nil {
		e.opened[shard] = of
		e.found[shard].Store(of)
	}
	return err
}

func (e *Each[E]) close(shard int) {
	e.closes(e.opened[shard])
	e.opened[shard] = nil
}

func (e *Each[E]) hide(shard int) { e.found[shard].Store(nil) }
