// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/aun"
)

// Connections are the connections of the clients of all configurations. The zero value is ready for use. Its methods
// may be called by any number of goroutines at once.
type Connections struct {
	Frames aun.Frames // of all connections

	authority atomic.Pointer[aun.Authority] // of the newest configuration
	inForce   atomic.Pointer[Front]         // the front of the configuration in force; nil for none
	nodes     atomic.Pointer[nodes]         // other processes, by the newest store; nil for none

	mu    sync.Mutex
	open  int // connections, logged in or not
	in    int // number of those logged in
	byAID map[string][]*Session
	strangers
	shared []*nodes // of all open stores, the newest last
}

// Serve has the agents of a front take the calls of all connections from now on, since its configuration is in force;
// nil for one without AUN.
func (c *Connections) Serve(f *Front) { c.inForce.Store(f) }

// Open returns the number of connections, logged in or not.
func (c *Connections) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// left takes an ended connection away.
func (c *Connections) left(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noStranger(s)
	c.remove(s)
	c.open--
}

// maxShort is the number of short connections of one slot beside its long one, at most.
const maxShort = 10

// add adds a session after its login. It returns the older session of the same AID, device and slot, which it has taken
// away, or the status for closing the new one.
func (c *Connections) add(s *Session, l Limits) (replaced *Session, refused aun.CloseCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.byAID[s.AID]
	short := 0
	for _, other := range list {
		if s.Device == "" || other.Device != s.Device || other.slotKey() != s.slotKey() {
			continue
		}
		switch {
		case other.isShort() && s.isShort():
			short++
		case !other.isShort() && !s.isShort():
			replaced = other
		}
	}
	switch {
	case short >= maxShort:
		return nil, aun.CloseShortCapacity
	case replaced == nil && len(list) >= l.ConnectionsPerAID:
		return nil, aun.CloseQuota
	case replaced == nil && c.in >= l.Connections:
		return nil, aun.CloseTryLater
	}
	c.noStranger(s)
	if replaced != nil {
		c.remove(replaced)
	}
	if c.byAID == nil {
		c.byAID = make(map[string][]*Session)
	}
	c.byAID[s.AID] = append(c.byAID[s.AID], s)
	c.in++
	return replaced, 0
}

// drop takes a session away, if it is still there.
func (c *Connections) drop(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(s)
}

// remove is drop while c.mu is held.
func (c *Connections) remove(s *Session) {
	list := c.byAID[s.AID]
	for i, other := range list {
		if other == s {
			list = append(list[:i:i], list[i+1:]...)
			c.in--
			break
		}
	}
	if len(list) == 0 {
		delete(c.byAID, s.AID)
		return
	}
	c.byAID[s.AID] = list
}

// Of returns the sessions of an AID.
func (c *Connections) Of(aid string) []*Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byAID[aid] // never changed in place
}

// online returns the sessions of an AID for messages and work: the long ones.
func (c *Connections) online(aid string) []*Session {
	list := c.Of(aid)
	if slices.ContainsFunc(list, (*Session).isShort) {
		list = slices.DeleteFunc(slices.Clone(list), (*Session).isShort)
	}
	return list
}

// Online reports whether an AID is connected, to whichever process, not counting short connections.
func (c *Connections) Online(aid string) bool {
	if len(c.online(aid)) > 0 {
		return true
	}
	n := c.nodes.Load()
	return n != nil && n.find(context.Background(), aid) != ""
}

// slotPrefix returns the part of a slot by which connections exclude each other.
func slotPrefix(slot string) string {
	if i := strings.IndexAny(slot, "/: "); i >= 0 {
		return slot[:i]
	}
	return slot
}
