// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"math/rand/v2"
	"time"
)

// How what has failed is tried again: soon, then ever more slowly.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 2 * time.Second
)

// retry paces what is tried again for a bounded time.
type retry struct {
	until time.Time
	wait  time.Duration
}

func newRetry(d time.Duration) *retry {
	return &retry{until: time.Now().Add(d), wait: retryFirst}
}

// over reports whether there is no time left for another try.
func (r *retry) over() bool { return !time.Now().Add(r.wait).Before(r.until) }

// pause waits before the next try. It reports false when ctx is done.
func (r *retry) pause(ctx context.Context, jitter func(time.Duration) time.Duration) bool {
	timer := time.NewTimer(jitter(r.wait))
	defer timer.Stop()
	r.wait = min(2*r.wait, retryMost)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// spread returns d, a quarter shorter or longer at random, so that what failed together is not tried again together.
func spread(d time.Duration) time.Duration {
	return d - d/4 + rand.N(d/2+1)
}
