// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// ErrInterrupted is the error of a call ended by an Interrupt. The call can be made again, by any goroutine, and then
// continues from its place.
var ErrInterrupted = errors.New("upstream: the wait for the agent was interrupted")

// Interrupt ends the wait for an answer, but not the exchange: the waiting goroutine can hand the exchange over to
// another one. The zero Interrupt has not ended. It is for one exchange at a time.
type Interrupt struct {
	// Until is when the interrupt ends by itself; zero for never. It is set before the interrupt is used.
	Until time.Time

	mu    sync.Mutex
	ended bool
	wake  func()
}

// End ends the wait. It may be called by any goroutine, and more than once.
func (i *Interrupt) End() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ended {
		i.ended = true
		if i.wake != nil {
			i.wake()
		}
	}
}

// Wake is for transports: End will call f, or Wake calls it if the interrupt has ended already. f must not wait. A
// second Wake replaces f, and nil removes it: then f is not running when Wake returns.
func (i *Interrupt) Wake(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wake = f
	if f != nil && i.ended {
		f()
	}
}

// Receive is for transports: it waits for the next value of a channel, or its end, until ctx ends or the agent has been
// silent for idle (0 means no limit). The interrupt i, if not nil, ends the wait with ErrInterrupted.
func Receive[T any](ctx context.Context, from <-chan T, i *Interrupt, idle time.Duration) (v T, ok bool, err error) {
	select {
	case v, ok = <-from:
		return v, ok, nil
	default:
	}
	var silent, until <-chan time.Time
	if idle > 0 {
		timer := time.NewTimer(idle)
		defer timer.Stop()
		silent = timer.C
	}
	var interrupted chan struct{}
	if i != nil {
		interrupted = make(chan struct{})
		i.Wake(func() { close(interrupted) })
		defer i.Wake(nil)
		if !i.Until.IsZero() {
			timer := time.NewTimer(time.Until(i.Until))
			defer timer.Stop()
			until = timer.C
		}
	}
	select {
	case v, ok = <-from:
		return v, ok, nil
	case <-ctx.Done():
		return v, false, Ended(ctx)
	case <-silent:
		return v, false, task.Errorf(task.AgentTimeout, "the agent was silent for %v", idle)
	case <-interrupted:
	case <-until:
	}
	return v, false, ErrInterrupted
}
