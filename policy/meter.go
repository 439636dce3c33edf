// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Meter counts what the policies of one Partner have decided, over all configurations. The zero value is ready for use,
// by any number of goroutines at once.
type Meter struct {
	mu     sync.Mutex
	rules  map[string]*decisions // entries are small and are kept
	quotas map[string]*refusals  // likewise
}

type decisions struct{ allowed, denied, dry atomic.Uint64 }

type refusals struct{ refused, dry atomic.Uint64 }

// Count is how often something has decided. DryRun are refusals that were none, in a dry run.
type Count struct {
	Name                    string // of a rule, or of a quota
	Allowed, Denied, DryRun uint64
}

func (m *Meter) decisions(name string) *decisions {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rules == nil {
		m.rules = make(map[string]*decisions)
	}
	if m.rules[name] == nil {
		m.rules[name] = new(decisions)
	}
	return m.rules[name]
}

func (m *Meter) refusals(name string) *refusals {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.quotas == nil {
		m.quotas = make(map[string]*refusals)
	}
	if m.quotas[name] == nil {
		m.quotas[name] = new(refusals)
	}
	return m.quotas[name]
}

// Rules yields what each rule has decided, in the order of their names.
func (m *Meter) Rules() iter.Seq[Count] {
	m.mu.Lock()
	all := maps.Clone(m.rules)
	m.mu.Unlock()
	return func(yield func(Count) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			d := all[name]
			if !yield(Count{name, d.allowed.Load(), d.denied.Load(), d.dry.Load()}) {
				return
			}
		}
	}
}

// Quotas yields how often each quota has refused something, in the order of their names.
func (m *Meter) Quotas() iter.Seq[Count] {
	m.mu.Lock()
	all := maps.Clone(m.quotas)
	m.mu.Unlock()
	return func(yield func(Count) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			r := all[name]
			if !yield(Count{Name: name, Denied: r.refused.Load(), DryRun: r.dry.Load()}) {
				return
			}
		}
	}
}
