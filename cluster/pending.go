// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/lockorder"
)

// calls are the calls made by this node, and those carried out by it. Nothing is sent under the mutex, see package
// lockorder.
type calls struct {
	of *Cluster

	mu       lockorder.Mutex[lockorder.Calls]
	services map[string]*service
	last     uint64              // id of a call
	pending  map[uint64]*pending // made by this node
	asking   map[string]int      // number of them, by service; no entry is zero
	serving  map[callKey]*serving
	held     int // bytes of the bodies of serving
}

// Bounds of the calls of one service. Each has its own, so the calls of one service leave the others theirs.
const (
	maxPending = 1 << 15
	maxServing = 1 << 13
	maxHeld    = 64 << 20 // bytes of the bodies larger than maxUnasked, if the service does not count them
)

// pending is a call made by this node.
type pending struct {
	id    uint64
	of    string // its service
	to    Owner
	out   outgoing
	in    *inbox // for the goroutine of the call: grants, and the reply
	lost  chan struct{}
	once  sync.Once
	heard atomic.Int64 // when something was received last, on the clock
	rest  atomic.Int64 // since when the next part of the reply is awaited, on the clock; 0 for not

	more    atomic.Bool // more than the first message was sent
	unheard atomic.Bool // no process listens to the node's address
	unbegun atomic.Bool // the node has not received the first message
}

func (p *pending) lose() { p.once.Do(func() { close(p.lost) }) }

func (s *calls) init(of *Cluster) {
	s.of = of
	s.services = make(map[string]*service)
	s.asking = make(map[string]int)
	s.pending = make(map[uint64]*pending)
	s.serving = make(map[callKey]*serving)
}

// begin makes a call.
func (s *calls) begin(to Owner, service string, request []byte) (*pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking[service] >= maxPending {
		return nil, &BusyError{s.of.config.Name}
	}
	s.last++
	s.asking[service]++
	p := &pending{id: s.last, of: service, to: to, out: outgoing{data: request}, in: newInbox(), lost: make(chan struct{})}
	p.heard.Store(int64(s.of.config.Clock()))
	s.pending[p.id] = p
	return p, nil
}

func (s *calls) end(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, p.id)
	if s.asking[p.of]--; s.asking[p.of] == 0 {
		delete(s.asking, p.of)
	}
}

// gone ends the calls to a gone node, and those made by it. The mutex of the cluster may be held.
func (s *calls) gone(incarnation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		if p.to.Incarnation == incarnation {
			p.lose()
		}
	}
	for key, v := range s.serving {
		if key.from == incarnation {
			v.cancel()
		}
	}
}

// failAll ends all calls.
func (s *calls) failAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pending {
		p.lose()
	}
	for _, v := range s.serving {
		v.cancel()
	}
}

// The times of pings, in leases.
const (
	pingAfter  = 3 // a third of a lease of silence
	loseAfter  = 2 // leases of silence, or without the next part of a body: then the call has failed
	abandonAge = 4 // leases without a ping: then the node carrying out the call cancels it
)

// watchCalls pings the nodes carrying out calls of this one, until Close.
func (c *Cluster) watchCalls() {
	for {
		select {
		case <-time.After(c.config.Lease / pingAfter):
		case <-c.ctx.Done():
			return
		}
		now := c.config.Clock()
		var ping []*pending
		c.calls.mu.Lock()
		stuck := func(since int64) bool { return since != 0 && now-time.Duration(since) > loseAfter*c.config.Lease }
		for _, p := range c.calls.pending {
			switch silent := now - time.Duration(p.heard.Load()); {
			case silent > loseAfter*c.config.Lease, stuck(p.rest.Load()):
				p.lose()
			case silent >= c.config.Lease/pingAfter:
				ping = append(ping, p)
			}
		}
		for _, v := range c.calls.serving {
			if now-time.Duration(v.heard.Load()) > abandonAge*c.config.Lease || stuck(v.rest.Load()) {
				v.cancel()
			}
		}
		c.calls.mu.Unlock()
		for _, p := range ping {
			p.more.Store(true)
			c.send(p.to.Incarnation, p.id, &frame{kind: pingFrame})
		}
	}
}

// probe asks whether an incarnation of a node lives. It is not heard if nothing is answered.
func (c *Cluster) probe(ctx context.Context, incarnation string) (alive, heard bool) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Lease/6)
	defer cancel()
	p, err := c.calls.begin(Owner{Incarnation: incarnation}, "", nil)
	if err != nil {
		return false, false
	}
	defer c.calls.end(p)
	if c.send(incarnation, p.id, &frame{kind: pingFrame}) != nil {
		return false, false
	}
	select {
	case <-p.lost: // the node does not know the call, or no process listens
		return !p.unheard.Load(), true
	case <-ctx.Done():
		return false, false
	}
}

// receive takes a message. It does not block.
func (c *Cluster) receive(m Message) {
	if m.Unheard {
		if p := c.calls.find(m.ID); p != nil {
			p.unheard.Store(true)
			p.unbegun.Store(!p.more.Load())
			p.lose()
		}
		return
	}
	f, err := readFrame(m.Data)
	if err != nil {
		c.strange(m.From, err)
		return
	}
	switch f.kind {
	case ownerFrame:
		c.mu.Lock()
		defer c.mu.Unlock()
		if f.shard < len(c.shards) && m.From != c.incarnation {
			c.shards[f.shard].route.forget()
			if s := c.shards[f.shard].store; s != nil { // this node may have lost the shard
				s.sure.Store(unsure)
			}
			c.change()
			c.kick()
		}
	case callFrame:
		c.serve(m.From, m.ID, f)
	case partFrame, cancelFrame, pingFrame, takeFrame:
		c.serving(m.From, m.ID, f)
	case grantFrame, workingFrame, unknownFrame, replyFrame, restFrame:
		p := c.calls.find(m.ID)
		if p == nil || p.to.Incarnation != m.From {
			return
		}
		p.heard.Store(int64(c.config.Clock()))
		switch f.kind {
		case workingFrame:
		case unknownFrame:
			p.lose()
		default:
			if !p.in.put(f) {
				p.lose()
			}
		}
	}
}

func (s *calls) find(id uint64) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id]
}

// inbox has the frames of a call not read yet by its goroutine.
type inbox struct {
	ready chan struct{} // has a value while there may be frames

	mu     sync.Mutex
	frames []frame
	size   int
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

// put adds a frame. It reports false if the sender has sent far more than it was granted.
func (b *inbox) put(f frame) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size += len(f.data) + overhead; b.size > 4*window {
		return false
	}
	b.frames = append(b.frames, f)
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return true
}

// take returns all frames there are.
func (b *inbox) take() []frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.frames
	b.frames, b.size = nil, 0
	return all
}
