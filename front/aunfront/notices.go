// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// notice is a notification to the clients of an AID, with one frame for all. The memory of the frame is counted once,
// and lent: if others need it, the connections still waiting for the frame are cut. A notice that can be read again is
// kept only while it is being sent: for a client reading nothing, it waits in the store.
type notice struct {
	front  *Front
	method string
	size   int                                   // of the frame, in bytes
	again  func(context.Context) ([]byte, error) // reads the params again; nil if they cannot be
	fresh  bool                                  // the frame is kept from the beginning
	tight  bool                                  // there was no memory for the frame, but it is kept all the same

	mu    sync.Mutex // a session's mutex is never taken while it is held
	frame []byte     // nil while it is not kept
	users map[*Session]struct{}
	lease limit.Lease
}

// newNotice returns a notice. The caller uses its frame, until it calls drop.
func newNotice(to *Session, method string, frame []byte, again func(context.Context) ([]byte, error)) *notice {
	n := &notice{front: to.front, method: method, size: len(frame), again: again, frame: frame,
		users: map[*Session]struct{}{nil: {}}, lease: to.front.config.Memory.Lease(to.Peer.Leader())}
	switch err := n.lease.Hold(int64(n.size)); {
	case err != nil && again != nil:
		n.frame = nil
		return n
	case err != nil:
		n.tight = true
		n.lease.Take(int64(n.size))
	}
	n.fresh = true
	n.lease.Lend(n.reclaim)
	return n
}

func eventFrame(method string, params []byte) []byte {
	return append(append(codec.BeginEvent(nil, method), params...), '}')
}

// reclaim cuts the connections still waiting for the frame.
func (n *notice) reclaim() {
	n.front.work.Go(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for s := range n.users {
			if s != nil {
				s.reclaim()
			}
		}
	})
}

// use has the frame kept for a session, if it is. It is called before the caller of newNotice calls drop.
func (n *notice) use(s *Session) {
	if n.fresh { // otherwise a goroutine holding mu may wait for its memory
		n.mu.Lock()
		defer n.mu.Unlock()
		n.users[s] = struct{}{}
	}
}

// take returns the frame, perhaps after waiting for it. The session may use it until it calls drop.
func (n *notice) take(s *Session) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frame == nil {
		if err := partner.WaitForMemory(s.ctx, &n.lease, int64(n.size), noticePatience); err != nil {
			return nil, err
		}
		params, err := n.again(s.ctx)
		if err != nil {
			n.lease.Release()
			return nil, err
		}
		n.frame = eventFrame(n.method, params)
		n.lease.Lend(n.reclaim)
	}
	n.users[s] = struct{}{}
	return n.frame, nil
}

// drop ends the use of the frame by a session, or by the caller of newNotice.
func (n *notice) drop(s *Session) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.users, s); len(n.users) == 0 && n.frame != nil {
		n.lease.TakeBack()
		n.lease.Release()
		n.frame = nil
	}
}

// Bounds of the queue for a client that does not read: notices, and bytes of those that cannot be read again. A notice
// is given up when it has waited for so long for memory.
const (
	maxPending      = 1000
	maxPendingBytes = 16 << 20
	noticePatience  = 20 * time.Second
)

// kept returns the number of bytes of a notice kept by a session while it waits to be sent.
func (n *notice) kept() int {
	if n.again != nil {
		return 0
	}
	return n.size
}

// Notify sends a notification to the client. It does not wait: a connection not taking its notifications is closed.
func (s *Session) Notify(method string, params []byte) { s.sendFrame(eventFrame(method, params)) }

// sendFrame is Notify for a whole frame.
func (s *Session) sendFrame(frame []byte) {
	n := newNotice(s, "", frame, nil)
	defer n.drop(nil)
	s.send(n)
}

// send adds a notice to the queue.
func (s *Session) send(n *notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || s.refused != nil {
		return
	}
	slow := len(s.pending) > 0
	if len(s.pending) >= maxPending || s.size+n.kept() > maxPendingBytes || n.tight && slow {
		s.front.work.Go(func() { s.conn.Close(aun.CloseTryLater, "the client does not take its notifications") })
		return
	}
	if n.again == nil || !s.sending {
		n.use(s)
	}
	s.pending, s.size = append(s.pending, n), s.size+n.kept()
	if !s.sending {
		s.sending = true
		s.front.work.Go(s.sendPending)
	}
}

// sendOfMany is sendFrame for one of many frames: it waits while the queue is half full, until ctx ends.
func (s *Session) sendOfMany(ctx context.Context, frame []byte) {
	s.sendFrame(frame)
	for s.crowded() {
		select {
		case <-s.taken:
		case <-ctx.Done():
			return
		}
	}
}

// crowded reports whether the queue of notifications is half full.
func (s *Session) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) >= maxPending/2 || s.size >= maxPendingBytes/2
}

// sendPending sends the queued notices.
func (s *Session) sendPending() {
	for n := s.nextPending(); n != nil; n = s.nextPending() {
		frame, err := n.take(s)
		if err != nil && s.ctx.Err() == nil {
			s.front.config.Log.Debug("a notification is not sent", "aid", s.AID, "error", err)
			continue
		}
		if err == nil {
			err = s.conn.Send(s.ctx, frame)
			n.drop(s)
		}
		if err != nil {
			return // the connection is lost, and dropPending follows
		}
	}
}

// nextPending takes the first notice of the queue; nil if there is none.
func (s *Session) nextPending() *notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		s.pending, s.sending = nil, false
		return nil
	}
	n := s.pending[0]
	s.pending[0] = nil
	s.pending, s.size = s.pending[1:], s.size-n.kept()
	select {
	case s.taken <- struct{}{}:
	default:
	}
	return n
}

// dropPending drops the queued notices. The connection, or its login, has ended.
func (s *Session) dropPending() {
	s.mu.Lock()
	list := s.pending
	s.pending, s.size = nil, 0
	s.mu.Unlock()
	for _, n := range list {
		n.drop(s)
	}
}

// Notify sends a notification to all long connections of an AID, and returns their number in this process. params is a
// JSON object. It does not wait: a connection not taking its notifications is closed.
func (c *Connections) Notify(aid, method string, params []byte) int {
	c.elsewhere(noticeTo{AID: aid, Method: method, Params: params})
	return send(c.online(aid), method, eventFrame(method, params), nil)
}

// Deliver is Notify for stored content: again reads the params again for a slow client. With one, only the last opened
// connection is notified.
func (c *Connections) Deliver(
	aid string, one bool, method string, params []byte, again func(context.Context) ([]byte, error),
) int {
	list := c.online(aid)
	if one && len(list) > 0 {
		list = list[len(list)-1:]
	} else {
		c.elsewhere(noticeTo{AID: aid, Method: method, Params: params, One: one})
	}
	return send(list, method, eventFrame(method, params), again)
}

// Send sends a whole frame to all long connections of an AID, as Notify does.
func (c *Connections) Send(aid string, frame []byte) {
	c.elsewhere(noticeTo{AID: aid, Frame: frame})
	send(c.online(aid), "", frame, nil)
}

func send(list []*Session, method string, frame []byte, again func(context.Context) ([]byte, error)) int {
	if len(list) == 0 {
		return 0
	}
	n := newNotice(list[0], method, frame, again)
	defer n.drop(nil)
	for _, s := range list {
		s.send(n)
	}
	return len(list)
}
