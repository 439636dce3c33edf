// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Course counts the steps of a load, so that a test can break something at any point of it. Its methods may be called
// by any number of goroutines at once. A nil course counts nothing.
type Course struct {
	mu    sync.Mutex
	steps int
	at    int // the number of steps at which the point of After is reached
	point chan struct{}
}

// step says that the load has made a step, such as an answer or an event.
func (c *Course) step() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps++; c.steps == c.at {
		close(c.point)
	}
}

// After returns a channel that is closed when the load has made a number of further steps, at least one. One goroutine
// waits for such a point at a time.
func (c *Course) After(steps int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.point = c.steps+steps, make(chan struct{})
	return c.point
}

// AnySeed is the seed of a test's randomness: the one of the environment, or another every time.
func AnySeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("AIP_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the seed is %d; AIP_SEED=%d uses it again", seed, seed)
	return seed
}
