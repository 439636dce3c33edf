// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Meter counts the decisions of the policies of one Partner, over all configurations. The zero value is ready for use,
// by any number of goroutines at once.
type Meter struct{ rules, quotas counters }

// counters count decisions by the names of their rules or quotas.
type counters struct {
	mu sync.Mutex
	of map[string]*decisions // entries are small and are kept
}

type decisions struct{ allowed, denied, dry atomic.Uint64 }

// Count is the number of decisions of a rule or a quota. DryRun are refusals in a dry run, without effect.
type Count struct {
	Name                    string // of a rule, or of a quota
	Allowed, Denied, DryRun uint64
}

// named returns the decisions of a rule or a quota.
func (c *counters) named(name string) *decisions {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = make(map[string]*decisions)
	}
	if c.of[name] == nil {
		c.of[name] = new(decisions)
	}
	return c.of[name]
}

func (c *counters) all() iter.Seq[Count] {
	c.mu.Lock()
	all := maps.Clone(c.of)
	c.mu.Unlock()
	return func(yield func(Count) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(all[name].count(name)) {
				return
			}
		}
	}
}

func (d *decisions) count(name string) Count {
	return Count{name, d.allowed.Load(), d.denied.Load(), d.dry.Load()}
}

// Rules yields the decisions of each rule, in the order of their names.
func (m *Meter) Rules() iter.Seq[Count] { return m.rules.all() }

// Quotas yields the number of refusals of each quota, in the order of their names.
func (m *Meter) Quotas() iter.Seq[Count] { return m.quotas.all() }
