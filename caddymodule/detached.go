// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"sync"
	"time"
)

// detached counts what has outlived its request, in all configurations: streams, and connections of AUN. takenOver
// counts the streams alone.
var detached, takenOver counter

// detachedGrace is how much longer than to drain them Stop waits for these streams.
const detachedGrace = 5 * time.Second

// counter counts what is waited for.
type counter struct {
	mu   sync.Mutex
	n    int64
	none chan struct{} // closed when n is 0 again; nil if none is waited for
}

func (c *counter) add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

func (c *counter) total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// wait waits until nothing is counted, but not for longer than a time.
func (c *counter) wait(most time.Duration) {
	c.mu.Lock()
	if c.n == 0 {
		c.mu.Unlock()
		return
	}
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.mu.Unlock()
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	select {
	case <-none:
	case <-timeout.C:
	}
}

// takeOver is detach for a stream that has taken its connection over.
func (a *App) takeOver() (end func()) {
	left := a.detach()
	takenOver.add(1)
	return func() {
		takenOver.add(-1)
		left()
	}
}

// detach keeps what a stream of this configuration needs, the store, until end is called.
func (a *App) detach() (end func()) {
	a.enter()
	detached.add(1)
	return func() {
		a.leave()
		detached.add(-1)
	}
}
