// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// accepted is the result of a token that is not refused. The other results are reasons.
const accepted = "accepted"

// Meter counts the results of the checks of one Partner, over all configurations. The zero value is ready for use, by
// any number of goroutines at once.
type Meter struct {
	accepted atomic.Uint64

	mu     sync.Mutex
	counts map[string]uint64 // of the other results
}

func (m *Meter) count(result string) {
	if result == accepted {
		m.accepted.Add(1)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = make(map[string]uint64)
	}
	m.counts[result]++
}

// Results yields how often each result was that of a check, in the order of their names.
func (m *Meter) Results() iter.Seq2[string, uint64] {
	m.mu.Lock()
	counts := maps.Clone(m.counts)
	m.mu.Unlock()
	if n := m.accepted.Load(); n > 0 {
		if counts == nil {
			counts = make(map[string]uint64)
		}
		counts[accepted] = n
	}
	return func(yield func(string, uint64) bool) {
		for _, result := range slices.Sorted(maps.Keys(counts)) {
			if !yield(result, counts[result]) {
				return
			}
		}
	}
}
