// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"sync"

	"github.com/aip-gateway/aip-gateway/upstream"
)

// allSlots holds the slots of agents, by URL and number: the runs of an earlier configuration go on during and after a
// reload, and count. An entry is small, and stays.
var allSlots struct {
	sync.Mutex
	of map[slotsKey]*upstream.Slots
}

type slotsKey struct {
	url  string
	runs int
}

func slotsOf(url string, runs int) *upstream.Slots {
	allSlots.Lock()
	defer allSlots.Unlock()
	key := slotsKey{url, runs}
	if allSlots.of == nil {
		allSlots.of = make(map[slotsKey]*upstream.Slots)
	}
	if allSlots.of[key] == nil {
		allSlots.of[key] = upstream.NewSlots(runs)
	}
	return allSlots.of[key]
}

// The bounds of max_runs where it is not set.
const (
	leastRuns = 16
	mostRuns  = 16384
)

// runsByFiles returns the default of max_runs: the other three quarters of the files are for callers, webhooks and the
// store.
func runsByFiles() int { return min(max(maxFiles()/4, leastRuns), mostRuns) }
