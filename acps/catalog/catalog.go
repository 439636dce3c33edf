// SPDX-License-Identifier: Apache-2.0

// Package catalog holds the cards of all agents that this process fronts, and the ACS that are made of them. What shows
// several agents at once reads it: agent.md and search.* of AUN, and the answers of ADP. A request has it read them all
// again where the last reading is a minute old.
//
// The documents of one mount, such as .well-known/acs.json, are not read from it: they depend on the URL and the
// version of A2A of the request, and are made for each. Both are made of the card that upstream/discovery keeps for the
// mount, so that the agent is asked no more often for them.
package catalog

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
)

// Agent is an agent that is fronted.
type Agent struct {
	Name string // under which its tasks are stored; each has its own
	AIC  string // empty for none
	AID  string // by which clients of AUN address it; empty for none
	// Card returns the agent's card, and when it has changed. It may wait for the agent.
	Card func(context.Context) (*translate.Card, time.Time, error)
	// ACS returns the ACS of its Partner; nil where there is none that others could use. It may wait for the agent.
	ACS func(context.Context) ([]byte, error)
}

// Entry is what is known of an agent. It is not changed: what has changed is another Entry.
type Entry struct {
	Agent
	Card    *translate.Card // empty until it was read
	Changed time.Time
	ACS     []byte // nil if there is none, or it was not read
}

const (
	age  = time.Minute     // how old an entry may be before it is read again
	wait = 2 * time.Second // how long a request waits for agents
	once = 8               // agents that are read at the same time
)

// Catalog holds the agents of the configuration in force. It may be used by any number of goroutines at once.
type Catalog struct {
	refreshing sync.Mutex // held by the goroutine that reads agents

	mu      sync.Mutex
	entries []*Entry // by Name; replaced when one of them is
	read    time.Time
}

// Set replaces the agents. What is known of those that stay is kept, and read again at the next request.
func (c *Catalog) Set(agents []Agent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries := make([]*Entry, 0, len(agents))
	for _, a := range agents {
		e := &Entry{Agent: a, Card: new(translate.Card), Changed: time.Now()}
		if i, ok := find(c.entries, a.Name); ok {
			old := c.entries[i]
			e.Card, e.Changed, e.ACS = old.Card, old.Changed, old.ACS
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	c.entries, c.read = entries, time.Time{}
}

// Known returns what is known of all agents, without waiting for any. The result is not to be changed, and is the same
// slice as long as nothing has changed.
func (c *Catalog) Known() []*Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries
}

// Same reports whether two results of Known or Entries are one and the same: nothing has changed between them.
func Same(a, b []*Entry) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Entries is Known, after the agents were read where that is due. An agent that does not answer keeps its entry.
func (c *Catalog) Entries(ctx context.Context) []*Entry {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	c.mu.Lock()
	now, known := time.Now(), c.entries
	due := now.Sub(c.read) >= age
	if due {
		c.read = now
	}
	c.mu.Unlock()
	if !due {
		return known
	}
	// The agents are read for all who ask, so the end of one request does not end the reading.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	var group sync.WaitGroup
	slots := make(chan struct{}, once)
	for _, e := range known {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			c.put(e, e.again(ctx))
		})
	}
	group.Wait()
	return c.Known()
}

// again reads the agent; nil if nothing has changed, or it cannot be read.
func (e *Entry) again(ctx context.Context) *Entry {
	card, changed, err := e.Agent.Card(ctx)
	if err != nil {
		return nil
	}
	read := &Entry{Agent: e.Agent, Card: card, Changed: changed, ACS: e.ACS}
	if e.Agent.ACS != nil {
		if read.ACS, err = e.Agent.ACS(ctx); err != nil {
			read.ACS = e.ACS
		}
	}
	if read.Card == e.Card && read.Changed.Equal(e.Changed) && string(read.ACS) == string(e.ACS) {
		return nil
	}
	return read
}

// put replaces an entry, if it is still there.
func (c *Catalog) put(old, read *Entry) {
	if read == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i, ok := find(c.entries, old.Name); ok && c.entries[i] == old {
		c.entries = slices.Clone(c.entries) // readers hold the slice
		c.entries[i] = read
	}
}

func find(entries []*Entry, name string) (int, bool) {
	return slices.BinarySearchFunc(entries, name, func(e *Entry, name string) int { return strings.Compare(e.Name, name) })
}
