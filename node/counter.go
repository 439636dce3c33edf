// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync"
	"time"
)

// Counter counts what is waited for. The zero value is ready for use.
type Counter struct {
	mu   sync.Mutex
	n    int64
	none chan struct{} // closed when n is 0 again; nil if none is waited for
}

// Add adds to the count.
func (c *Counter) Add(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}

// Total returns the count.
func (c *Counter) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Wait waits until nothing is counted, but not for longer than a time.
func (c *Counter) Wait(most time.Duration) {
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
