// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"sync"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// held keeps the events of a stream back until the task rests.
type held struct {
	mu     sync.Mutex
	frames map[*partner.Call][]byte
}

func newHeld() *held { return &held{frames: make(map[*partner.Call][]byte)} }

func (h *held) frame(c *partner.Call, e *partner.Event, frame []byte) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := append(h.frames[c], frame...)
	if e.State == "" || e.State == "accepted" || e.State == "working" {
		h.frames[c] = all
		return []byte{}
	}
	delete(h.frames, c)
	return all
}
