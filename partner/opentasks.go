// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// openTasks counts the unfinished tasks of every Leader at every Partner. The tasks stored before the engine was opened
// are counted in the background, because there may be millions: until then no task is added.
type openTasks struct {
	counter limit.Counter // by logname.Owner
	all     limit.Counter // by Partner
	counted chan struct{} // closed when they are counted
	failed  chan struct{} // closed when the store could not be read; it is read again
	closing <-chan struct{}

	mu    sync.Mutex
	ended map[string]int64 // tasks ended before they were counted, by logname.Owner; nil afterwards
}

func newOpenTasks(closing <-chan struct{}) *openTasks {
	return &openTasks{counted: make(chan struct{}), failed: make(chan struct{}), closing: closing,
		ended: make(map[string]int64)}
}

// errUncounted is the error of a store that cannot be read: the number of a Leader's tasks is not known.
var errUncounted = errors.New("partner: the unfinished tasks are not counted yet")

// unlimited are the limits of a Leader without limits.
var unlimited = limit.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64}

// room says whether there is room for one more task.
type room uint8

const (
	fits room = iota
	tooManyOfLeader
	tooManyOfAll
)

// add counts one more task, unless its Leader has max unfinished ones already, or all Leaders at its Partner have
// maxOfAll, and reports the outcome; 0 is no limit. The error is the one of ctx, or of the store.
func (o *openTasks) add(ctx context.Context, log string, max, maxOfAll int) (room, error) {
	select {
	case <-o.counted:
	default:
		select {
		case <-o.counted:
		case <-o.failed:
			return fits, StoreError(errors.Join(replay.ErrUnavailable, errUncounted), "the store cannot be read")
		case <-o.closing:
			return fits, StoreError(replay.ErrClosed, "")
		case <-ctx.Done():
			return fits, ctx.Err()
		}
	}
	limits, ofAll := unlimited, unlimited
	if max > 0 {
		limits.PerLeader = int64(max)
	}
	if maxOfAll > 0 {
		ofAll.PerLeader = int64(maxOfAll)
	}
	owner, partner := logname.Owner(log), partnerOf(log)
	if o.counter.Take(owner, 1, limits) != nil {
		return tooManyOfLeader, nil
	}
	if o.all.Take(partner, 1, ofAll) != nil {
		o.counter.Give(owner, 1)
		return tooManyOfAll, nil
	}
	return fits, nil
}

// of returns the numbers of unfinished tasks: of the Leader of a log, and of all Leaders at its Partner.
func (o *openTasks) of(log string) (ofLeader, ofAll int64) {
	return o.counter.Held(logname.Owner(log)), o.all.Held(partnerOf(log))
}

// partnerOf returns the Partner in the name of a task's log, or in a logname.Owner, in a form of its own.
func partnerOf(log string) string {
	return log[:strings.Index(log, logname.Separator)+1]
}

// total returns the number of unfinished tasks, and 0 until they are counted.
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
	o.all.Give(partnerOf(log), 1)
}

// fail ends the wait of the callers about to add a task while the store cannot be read.
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

// finish sets the numbers of unfinished tasks in the store at the beginning of the count, by logname.Owner.
func (o *openTasks) finish(counts map[string]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for owner, n := range counts {
		_ = o.counter.Take(owner, n, unlimited) // is within the limits
		_ = o.all.Take(partnerOf(owner), n, unlimited)
	}
	for owner, n := range o.ended {
		o.counter.Give(owner, n)
		o.all.Give(partnerOf(owner), n)
	}
	o.ended = nil
	close(o.counted)
}
