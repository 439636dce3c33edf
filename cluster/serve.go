// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// callKey names a call among those carried out by this node.
type callKey struct {
	from string // the incarnation of its maker
	id   uint64
}

// serving is a call carried out by this node for another one.
type serving struct {
	callKey
	call   frame
	of     *service
	in     *inbox // parts of the request, and grants of the reply
	cancel context.CancelFunc
	heard  atomic.Int64 // when something was received last, on the clock
	rest   atomic.Int64 // since when the next part of the request is awaited, on the clock; 0 for not
}

// serve begins to carry out a call, if the node may.
func (c *Cluster) serve(from string, id uint64, f frame) {
	refuse := func(s status) { c.send(from, id, &frame{kind: replyFrame, status: s}) }
	if f.shard >= 0 && (f.shard >= len(c.shards) || c.owned(f.shard) == nil) {
		refuse(notOwner)
		return
	}
	s := &c.calls
	s.mu.Lock()
	of, key := s.services[f.service], callKey{from, id}
	_, again := s.serving[key]
	if of == nil || again || of.serving >= maxServing || !of.fits(int(f.size)) || c.ctx.Err() != nil {
		s.mu.Unlock()
		switch {
		case again:
		case of == nil:
			refuse(noService)
		default:
			refuse(busy)
		}
		return
	}
	v := &serving{callKey: key, call: f, of: of, in: newInbox()}
	v.heard.Store(int64(c.config.Clock()))
	ctx, cancel := timed(c.ctx, &f, c.config.Lease/10)
	v.cancel = cancel
	s.serving[key] = v
	of.serving++
	s.hold(of, int(f.size))
	c.work.Go(func() {
		replied := c.carryOut(ctx, v)
		cancel()
		s.mu.Lock()
		delete(s.serving, key)
		of.serving--
		s.hold(of, -int(f.size))
		s.hold(of, -replied)
		s.mu.Unlock()
	})
	s.mu.Unlock()
}

// timed returns the context of a call. If the calling node has limited its time, the limit is a little later here: as a
// rule, the calling node ends the call first.
func timed(ctx context.Context, f *frame, later time.Duration) (context.Context, context.CancelFunc) {
	if f.limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(f.limit)*time.Millisecond+later)
}

// The errors of Request.Body.
var (
	errCut      = errors.New("the rest of a request has not come")
	errNotBegun = errors.New("the shard has moved while a request came")
)

// carryOut has a call carried out, and sends the reply. It returns the number of counted bytes of the reply.
func (c *Cluster) carryOut(ctx context.Context, v *serving) (replied int) {
	q := Request{Shard: v.call.shard, Head: v.call.data, Size: int(v.call.size)}
	v.call.data = nil
	defer q.end()
	q.rest = func(ctx context.Context) ([]byte, error) {
		request, err := c.readRequest(ctx, v, q.Head)
		if err == nil && q.Shard >= 0 && c.owned(q.Shard) == nil {
			err = errNotBegun
		}
		return request, err
	}
	body, err := c.calls.answerOf(v.call.service)(ctx, &q)
	switch {
	case errors.Is(err, errCut):
		return 0
	case errors.Is(err, errNotBegun):
		c.send(v.from, v.id, &frame{kind: replyFrame, status: notOwner})
		return 0
	}
	first := frame{kind: replyFrame, status: ended}
	if errors.Is(ctx.Err(), context.Canceled) { // by this node alone, if the caller is still there
		err = replay.ErrClosed
	}
	if errors.Is(err, replay.ErrClosed) {
		first.status, body = moved, nil
	} else if err != nil {
		first.status, body = failed, []byte(err.Error())
	} else if len(body) > maxBody {
		first.status, body = failed, []byte("the reply is too large to be sent to another node")
	}
	if !c.calls.keep(v.of, len(body)) {
		body, first.status = []byte("the node holds as many bytes of replies as it may"), failed
		c.calls.keep(v.of, len(body)) // so little fits
	}
	out := outgoing{data: body, sent: c.unasked(len(body))}
	first.size, first.data = uint64(len(body)), body[:out.sent]
	if c.send(v.from, v.id, &first) != nil {
		return len(body)
	}
	for out.sent < len(out.data) {
		select {
		case <-v.in.ready:
			for _, g := range v.in.take() {
				if g.kind == takeFrame && c.sendParts(v.from, v.id, restFrame, &out, g.offset) != nil {
					return len(body)
				}
			}
		case <-ctx.Done():
			return len(body)
		}
	}
	return len(body)
}

// readRequest reads the parts of a request after the first.
func (c *Cluster) readRequest(ctx context.Context, v *serving, data []byte) ([]byte, error) {
	size := int(v.call.size)
	data = append(make([]byte, 0, size), data...)
	defer v.rest.Store(0)
	for granted := 0; len(data) < size; {
		v.rest.Store(int64(c.config.Clock()))
		if granted < size && granted-len(data) < window/2 {
			granted = min(len(data)+window, size)
			if c.send(v.from, v.id, &frame{kind: grantFrame, offset: uint64(granted)}) != nil {
				return nil, errCut
			}
		}
		select {
		case <-v.in.ready:
			for _, p := range v.in.take() {
				if p.kind != partFrame || p.offset != uint64(len(data)) || len(data)+len(p.data) > size || len(p.data) == 0 {
					return nil, errCut // a part was lost
				}
				data = append(data, p.data...)
			}
		case <-ctx.Done():
			return nil, errCut
		}
	}
	return data, nil
}

// serving takes a message about a call carried out by this node.
func (c *Cluster) serving(from string, id uint64, f frame) {
	c.calls.mu.Lock()
	v := c.calls.serving[callKey{from, id}]
	c.calls.mu.Unlock()
	if v == nil {
		if f.kind != cancelFrame {
			c.send(from, id, &frame{kind: unknownFrame})
		}
		return
	}
	v.heard.Store(int64(c.config.Clock()))
	switch f.kind {
	case pingFrame:
		c.send(from, id, &frame{kind: workingFrame})
	case cancelFrame:
		v.cancel()
	default:
		if !v.in.put(f) {
			v.cancel()
		}
	}
}
