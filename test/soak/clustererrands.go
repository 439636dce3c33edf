// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// errands are the tasks of the Leaders of a cluster.
type errands struct {
	*cluster
	tasks, rate int
	seed        uint64
	names       atomic.Int64
	count       atomic.Int64 // of tasks that were checked
	grouped     atomic.Int64 // of them, those of groups

	mu     sync.Mutex
	hooked []expected
	file   *os.File // what follows writes to it
	packed *gzip.Writer
	lines  *json.Encoder // of histories
	buffer *bufio.Writer
}

// expected is what is to come to a path of the receiver of webhooks.
type expected struct {
	path   string
	states []task.Status
}

func newErrands(c *cluster, s clusterSettings) (*errands, error) {
	file, err := os.Create(filepath.Join(c.out, "histories.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	e := &errands{cluster: c, tasks: s.tasks, rate: s.begins, seed: s.seed, file: file, packed: gzip.NewWriter(file)}
	e.buffer = bufio.NewWriter(e.packed)
	e.lines = json.NewEncoder(e.buffer)
	return e, nil
}

func (e *errands) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := errors.Join(e.buffer.Flush(), e.packed.Close(), e.file.Close()); err != nil {
		e.complain("the histories: %v", err)
	}
}

// afterwards is how long tasks begin and end without a disturbance, in the end.
const afterwards = 5 * time.Second

// during has tasks begin at a steady rate while f runs, and for a moment after. It returns when all have ended.
func (e *errands) during(ctx context.Context, f func(context.Context)) {
	pacing, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	pace := make(chan struct{}, e.rate)
	group.Go(func() { tick(pacing, e.rate, pace) })
	for range e.tasks {
		group.Go(func() {
			for {
				select {
				case <-pace:
				case <-pacing.Done():
					return
				}
				newErrand(e, e.names.Add(1)).run(ctx)
				e.count.Add(1)
			}
		})
	}
	f(ctx)
	wait(ctx, aftermath+afterwards) // what is felt of the last one
	stop()
	group.Wait()
}

// keep keeps the history of a task that has ended, and what is to come to its webhooks.
func (e *errands) keep(one *errand, paths []string, states []task.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.lines.Encode(one.history); err != nil {
		e.complain("the history of %s: %v", one.id, err)
	}
	for _, path := range paths {
		e.hooked = append(e.hooked, expected{path, states})
	}
}

// awaitHooks waits until all notifications have come that must come.
func (e *errands) awaitHooks(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	const limit = 2 * time.Minute
	open, lost := e.hooked, 0
	deadline := time.Now().Add(limit)
	for len(open) > 0 && ctx.Err() == nil && time.Now().Before(deadline) {
		var still []expected
		lost = 0
		for _, x := range open {
			switch n, err := e.hooks.missing(x.path, x.states); {
			case err != nil:
				e.complain("webhook %s: %v", x.path, err)
			case n > 0:
				still, lost = append(still, x), lost+n
			}
		}
		if open = still; len(open) > 0 {
			wait(ctx, 200*time.Millisecond)
		}
	}
	if len(open) > 0 {
		e.complain("%d notifications of %d webhooks have not come within %v, such as those to %s", lost, len(open), limit,
			open[0].path)
	}
}
