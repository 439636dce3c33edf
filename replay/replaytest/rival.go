// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"context"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Rival is a store with a second writer. It is faster than each append to an existing log of some classes, once: its
// append changes nothing of the log but the revision, so a writer can go on after it reads the log again.
type Rival struct {
	replay.Store
	Classes string // the first bytes of the names of the logs

	mu   sync.Mutex
	met  map[string]bool // the logs with the rival's append as the last one
	wins int
}

// Append implements replay.Store.
func (r *Rival) Append(ctx context.Context, a replay.Append) error {
	r.mu.Lock()
	if a.Log != "" && strings.IndexByte(r.Classes, a.Log[0]) >= 0 && !r.met[a.Log] && r.touch(ctx, a.Log) == nil {
		if r.met == nil {
			r.met = make(map[string]bool)
		}
		r.met[a.Log] = true
		r.wins++
	} else {
		delete(r.met, a.Log)
	}
	r.mu.Unlock()
	return r.Store.Append(ctx, a)
}

// touch raises the revision of a log.
func (r *Rival) touch(ctx context.Context, log string) error {
	h, err := r.Store.Head(ctx, log)
	if err != nil {
		return err
	}
	return r.Store.Append(ctx,
		replay.Append{Log: log, Expect: h.Revision, Metadata: h.Metadata, DueAt: h.DueAt, Lists: h.Lists})
}

// Wins returns the number of times the rival was faster.
func (r *Rival) Wins() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wins
}
