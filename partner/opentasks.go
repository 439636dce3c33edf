// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
)

// openTasks counts the unfinished tasks of every Leader at every Partner. Those that the store had when the engine was
// opened are counted in the background, because there may be millions: until then no task is added.
type openTasks struct {
	counter quota.Counter // by logname.Owner
	counted chan struct{} // closed when they are counted
	failed  chan struct{} // closed when the store could not be read; it is read again
	closing <-chan struct{}

	mu    sync.Mutex
	ended map[string]int64 // how many ended before they were counted, by logname.Owner; nil afterwards
}

func newOpenTasks(closing <-chan struct{}) *openTasks {
	return &openTasks{counted: make(chan struct{}), failed: make(chan struct{}), closing: closing,
		ended: make(map[string]int64)}
}

// errUncounted says that the store cannot be read, so that it is not known how many tasks a Leader has.
var errUncounted = errors.New("partner: the unfinished tasks are not counted yet")

// unlimited are the limits of a Leader that has none.
var unlimited = quota.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64}

// add counts one more task, unless its Leader has max unfinished ones already, and reports whether it did; max 0 is no
// limit. The error is that of ctx, or one of the store.
func (o *openTasks) add(ctx context.Context, log string, max int) (bool, error) {
	select {
	case <-o.counted:
	default:
		select {
		case <-o.counted:
		case <-o.failed:
			return false, StoreError(errors.Join(replay.ErrUnavailable, errUncounted), "the store cannot be read")
		case <-o.closing:
			return false, StoreError(replay.ErrClosed, "")
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	limits := unlimited
	if max > 0 {
		limits.PerLeader = int64(max)
	}
	return o.counter.Take(logname.Owner(log), 1, limits) == nil, nil
}

// total returns how many there are, and 0 until they are counted.
func (o *openTasks) total() int64 {
	select {
	case <-o.counted:
		return o.counter.Total()
	default:
		return 0
	}
}

// done counts one task less.
func (o *openTasks) done(log string) {
	owner := logname.Owner(log)
	select {
	case <-o.counted:
	default:
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.ended != nil {
			o.ended[owner]++
			return
		}
	}
	o.counter.Give(owner, 1)
}

// fail has those that would add a task wait no longer while the store cannot be read.
func (o *openTasks) fail() {
	select {
	case <-o.failed:
	default:
		close(o.failed)
	}
}

// begin makes the count begin, perhaps again.
func (o *openTasks) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.ended)
}

// finish sets how many unfinished tasks the store had when the count began, by logname.Owner.
func (o *openTasks) finish(counts map[string]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for owner, n := range counts {
		_ = o.counter.Take(owner, n, unlimited) // is within the limits
	}
	for owner, n := range o.ended {
		o.counter.Give(owner, n)
	}
	o.ended = nil
	close(o.counted)
}
