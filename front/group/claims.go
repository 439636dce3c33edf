// SPDX-License-Identifier: Apache-2.0

package group

import (
	"sync"
	"time"
)

// The most invitations without a proven sender refused in writing by the Partner, in a window of time: of one inbox,
// and of one named Leader. A user of the broker with access to the inbox can name any Leader, and would have the
// Partner fill that Leader's inbox.
const (
	claimWindow       = time.Minute
	maxClaims         = 60
	maxClaimsOfLeader = 6
)

// claims counts such refusals. It has at most maxClaims names. The zero value is ready for use, by any number of
// goroutines at once.
type claims struct {
	mu    sync.Mutex
	since time.Time // the window
	all   int
	of    map[string]int // by the AIC of the Leader
}

// take reports whether one more may be written to a Leader, and counts it.
func (c *claims) take(leader string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.of == nil || now.Sub(c.since) >= claimWindow {
		c.since, c.all, c.of = now, 0, make(map[string]int)
	}
	if c.all >= maxClaims || c.of[leader] >= maxClaimsOfLeader {
		return false
	}
	c.all++
	c.of[leader]++
	return true
}

// stop begins a window without refusals: the broker has not taken one, and so has ended the link.
func (c *claims) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since, c.all, c.of = time.Now(), maxClaims, make(map[string]int)
}
