// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"
)

// How what has failed is tried again: soon, then ever more slowly.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 2 * time.Second
	// starvedMost is for how long the gateway's own lack of file descriptors does not count as time.
	starvedMost = 5 * time.Minute
)

// retry paces what is tried again for a bounded time.
type retry struct {
	begun, until time.Time
	most, wait   time.Duration
}

func newRetry(most time.Duration) *retry {
	now := time.Now()
	return &retry{begun: now, until: now.Add(most), most: most, wait: retryFirst}
}

// over reports whether there is no time left for another try after err. What fails because the gateway has no file
// descriptors left says nothing about the agent, so the time begins again after it.
func (r *retry) over(err error) bool {
	now := time.Now()
	if isStarved(err) && now.Sub(r.begun) < starvedMost {
		r.until = now.Add(r.most)
		return false
	}
	return !now.Add(r.wait).Before(r.until)
}

// isStarved reports whether the process, or the system, has no file descriptors left.
func isStarved(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

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
