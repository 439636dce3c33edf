// SPDX-License-Identifier: Apache-2.0

// Package partner keeps the life-cycle of tasks: it obeys a Leader's commands, has an agent carry them out,
// keeps the deadlines, and picks up after a crash what was under way. It knows no wire format and no
// transport. Every task is one log of a replay.Store, and the Engine is its only writer.
package partner

import (
	"context"
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

// openTasks counts the unfinished tasks of every Leader of every Partner.
type openTasks struct {
	mu sync.Mutex
	n  map[string]int // by logname.Owner
}

// count fills the counters from the store, where every unfinished task has a Wake.
func (o *openTasks) count(ctx context.Context, store replay.Store) error {
	o.n = make(map[string]int)
	for w, err := range store.Due(ctx, logname.Task, replay.Recover, replay.EndOfTime) {
		if err != nil {
			return err
		}
		o.n[logname.Owner(w.Log)]++
	}
	return nil
}

// add counts one more task, unless there are max already; max 0 is no limit.
func (o *openTasks) add(log string, max int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	owner := logname.Owner(log)
	if max > 0 && o.n[owner] >= max {
		return false
	}
	o.n[owner]++
	return true
}

func (o *openTasks) done(log string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	owner := logname.Owner(log)
	if o.n[owner]--; o.n[owner] <= 0 {
		delete(o.n, owner)
	}
}
