// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/replay/follow"
)

// A client acknowledges events without knowing: it answers a ping of WebSocket after it has read all frames before the
// ping. So everything sent before an answered ping is received, and the device continues there after a cut. Later
// events may be sent again, with the same number.

// acks is a session's knowledge of the events read by its client.
type acks struct {
	pinging bool
	due     *time.Timer // stores the positions; nil while none is due

	storing sync.Mutex
	stopped bool // under storing: nothing is stored any more
}

const (
	// storeEvery is the shortest time between two writes of the positions of a connection.
	storeEvery = 50 * time.Millisecond
	// awaitAcksTimeout is the time for which a closing connection waits for its client to read.
	awaitAcksTimeout = 2 * time.Second
)

// acknowledge has the client pinged, if it was sent unacknowledged events.
func (s *Session) acknowledge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.acks.pinging && s.ctx.Err() == nil {
		s.acks.pinging = true
		s.front.work.Go(s.pingUntilRead)
	}
}

// pingUntilRead pings the client until it has read all sent events.
func (s *Session) pingUntilRead() {
	for {
		sent := s.sent()
		if len(sent) == 0 || !s.pingFor(sent, pingTimeout) {
			s.mu.Lock()
			s.acks.pinging = false
			more := len(sent) == 0 && s.unread()
			s.mu.Unlock()
			if more { // since the call of sent
				s.acknowledge()
			}
			return
		}
	}
}

// sent returns the subscriptions with events not acknowledged by the client, and the numbers of the last of them.
func (s *Session) sent() map[*subscription]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list map[*subscription]uint64
	for _, sub := range s.subs {
		if sub.written > sub.read || sub.ended && !sub.closed && sub.read == sub.written {
			if list == nil {
				list = make(map[*subscription]uint64)
			}
			list[sub] = sub.written
			sub.closed = sub.ended
		}
	}
	return list
}

// unread reports whether sent would return any. s.mu is held.
func (s *Session) unread() bool {
	for _, sub := range s.subs {
		if sub.written > sub.read {
			return true
		}
	}
	return false
}

// pingFor pings the client, and records the events it has read.
func (s *Session) pingFor(sent map[*subscription]uint64, timeout time.Duration) bool {
	ctx, done := context.WithTimeout(s.ctx, timeout)
	defer done()
	if s.conn.Ping(ctx) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub, seq := range sent {
		sub.read = max(sub.read, seq)
	}
	if s.acks.due == nil {
		s.acks.due = time.AfterFunc(storeEvery, s.storePositions)
	}
	return true
}

// storePositions stores the client's positions.
func (s *Session) storePositions() {
	s.acks.storing.Lock()
	defer s.acks.storing.Unlock()
	s.store()
}

// store is storePositions while s.acks.storing is held.
func (s *Session) store() {
	if s.acks.stopped {
		return
	}
	type write struct {
		sub    *subscription
		cursor follow.Cursor
		end    bool
	}
	var list []write
	s.mu.Lock()
	s.acks.due = nil
	for _, sub := range s.subs {
		end := sub.ended && sub.read == sub.written
		if sub.read > sub.stored || end {
			sub.cursor.Seq = sub.read
			list = append(list, write{sub, sub.cursor, end})
		}
		if sub.gone && sub.read == sub.written {
			delete(s.subs, sub.taskID)
		}
	}
	s.mu.Unlock()
	for _, w := range list {
		ctx := context.WithoutCancel(s.ctx)
		x, err := s.front.config.Index, error(nil)
		to := w.cursor.Seq
		if w.end {
			err = x.end(ctx, w.sub.taskID, s.follower(), &w.cursor)
		} else {
			err = x.write(ctx, &w.cursor)
		}
		if err != nil {
			s.front.config.Log.Warn("how far a client has read could not be stored", "task", w.sub.taskID, "aid", s.AID,
				"error", err)
			continue
		}
		s.mu.Lock()
		w.sub.stored, w.sub.cursor = max(w.sub.stored, to), w.cursor
		s.mu.Unlock()
	}
}

// awaitAcks waits until the client has read the events sent to it, but not for long, and stores its positions. No more
// is sent.
func (s *Session) awaitAcks() {
	s.pingFor(s.sent(), awaitAcksTimeout)
	s.stopAcks()
}

// stopAcks stores the client's positions, for the last time.
func (s *Session) stopAcks() {
	s.acks.storing.Lock()
	defer s.acks.storing.Unlock()
	s.store()
	s.acks.stopped = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acks.due != nil {
		s.acks.due.Stop()
	}
}
