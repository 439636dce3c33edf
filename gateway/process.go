// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/fewlines"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/assignee"
	"github.com/aip-gateway/aip-gateway/upstream/auntransport"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
)

// Process is the shared state of all gateways of a process, over all configurations. The zero value is ready for use.
// It must not be copied.
type Process struct {
	Streams   limit.Counter   // open streams
	Memory    limit.Counter   // bytes of memory held by callers
	Callbacks callback.Server // receives push notifications of agents
	Assignees assignee.Hub    // the tasks of agents connecting to the gateway

	AUN auntransport.Pool // the gateway's own connections to AUN

	strangers fewlines.Limit // lines about calls of peers without a proof

	workers  workers
	open     openStreams
	decoding sync.Mutex // held while a large request is parsed and decoded

	mu     sync.Mutex
	slots  map[slotsKey]*upstream.Slots // by agent. Entries are small and are kept
	meters map[string]*Meter            // likewise
}

type slotsKey struct {
	url            string
	max, perLeader int
}

// slotsOf returns the slots of an agent with its limits. Configurations share them, so requests sent before a reload
// count after it.
func (p *Process) slotsOf(url string, c *AgentConfig) *upstream.Slots {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := slotsKey{url, c.MaxRequests, c.MaxPerLeader}
	if p.slots == nil {
		p.slots = make(map[slotsKey]*upstream.Slots)
	}
	if p.slots[key] == nil {
		p.slots[key] = upstream.NewSlots(c.MaxRequests, c.MaxPerLeader)
	}
	return p.slots[key]
}
