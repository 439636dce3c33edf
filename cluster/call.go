// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// MovedError is the error of a call not carried out by a node, or not known to be, because the node does not own the
// shard or does not answer. It wraps replay.ErrFenced.
type MovedError struct {
	Shard int  // -1 for a call to a node
	Begun bool // the node may have begun
	// Silent is the time nothing was heard of the node before the call was given up.
	Silent time.Duration
}

func (e *MovedError) Error() string {
	if e.Shard < 0 {
		return "the node does not answer"
	}
	return fmt.Sprintf("shard %d has no owner now, or another one", e.Shard)
}

// Unwrap returns replay.ErrFenced.
func (e *MovedError) Unwrap() error { return replay.ErrFenced }

// RemoteError is the error returned by the service of another node.
type RemoteError struct{ Node, Text string }

func (e *RemoteError) Error() string { return fmt.Sprintf("node %q: %s", e.Node, e.Text) }

// BusyError is the error of a call not begun by a node, because the node has too much to do.
type BusyError struct{ Node string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("node %q carries out as many calls of other nodes as it may; send the request again", e.Node)
}

// Handle implements shard.Peers. The name of a service has 64 bytes at most. answer may be called by as many goroutines
// at once as the bounds of a service allow. Its error is a replay.ErrClosed if the shard has moved; others come as a
// RemoteError.
func (c *Cluster) Handle(name string, answer func(ctx context.Context, shard int, request []byte) ([]byte, error)) {
	c.calls.handle(name, true, func(ctx context.Context, q *Request) ([]byte, error) {
		request, err := q.Body(ctx)
		if err != nil {
			return nil, err
		}
		return answer(ctx, q.Shard, request)
	})
}

// HandleRequests is Handle for a service counting the memory of its calls itself, before they hold it.
func (c *Cluster) HandleRequests(name string, answer func(ctx context.Context, q *Request) ([]byte, error)) {
	c.calls.handle(name, false, answer)
}

// Call implements shard.Peers. It asks one node once. If the error is a MovedError, the call may be made again; if
// Begun is true, it may be carried out twice then. When ctx is done, this node says so to the owner.
func (c *Cluster) Call(ctx context.Context, shard int, service string, request []byte) ([]byte, error) {
	reply, _, err := c.CallOwner(ctx, shard, service, request, nil)
	return reply, err
}

// CallOwner is Call, and returns the name of the node asked, too; empty for none. reserve is called before the reply is
// held; nil if it is not counted.
func (c *Cluster) CallOwner(
	ctx context.Context, shard int, service string, request []byte, reserve replay.Reserve,
) (reply []byte, node string, err error) {
	if c.owned(shard) != nil {
		reply, err = c.callHere(ctx, shard, service, request)
		return reply, c.config.Name, err
	}
	to, err := c.route(ctx, shard)
	if err != nil || to.Node == "" || to.Incarnation == c.incarnation {
		return nil, "", &MovedError{Shard: shard}
	}
	reply, err = c.ask(ctx, to, shard, service, request, reserve)
	if _, moved := errors.AsType[*MovedError](err); moved {
		c.forget(shard, to)
	}
	return reply, to.Node, err
}

// callHere has this node carry out a request.
func (c *Cluster) callHere(ctx context.Context, shard int, service string, request []byte) ([]byte, error) {
	answer := c.calls.answerOf(service)
	if answer == nil {
		return nil, &MovedError{Shard: shard} // it has just begun, or is of an older version
	}
	q := Request{Shard: shard, Head: request, Size: len(request)}
	reply, err := answer(ctx, &q)
	q.end()
	if errors.Is(err, replay.ErrClosed) {
		err = &MovedError{Shard: shard, Begun: true}
	}
	return reply, err
}

// ask sends a call to a node, and waits for the reply.
func (c *Cluster) ask(
	ctx context.Context, to Owner, shard int, service string, request []byte, reserve replay.Reserve,
) ([]byte, error) {
	if len(request) > maxBody {
		return nil, fmt.Errorf("a request to another node has %d bytes, but may have %d at most", len(request), maxBody)
	}
	p, err := c.calls.begin(to, service, request)
	if err != nil {
		return nil, err
	}
	defer c.calls.end(p)
	f := frame{kind: callFrame, shard: shard, service: service, size: uint64(len(request))}
	if at, ok := ctx.Deadline(); ok {
		f.limit = uint64(max(time.Until(at), time.Millisecond) / time.Millisecond)
	}
	p.out.sent = c.unasked(len(request))
	f.data = request[:p.out.sent]
	if p.out.sent == len(request) {
		p.out = outgoing{}
	}
	if err := c.send(to.Incarnation, p.id, &f); err != nil {
		return nil, &MovedError{Shard: shard}
	}
	r := reply{shard: shard}
	for {
		select {
		case <-p.in.ready:
			for _, f := range p.in.take() {
				if f.kind == grantFrame {
					p.more.Store(true)
					err = c.sendParts(to.Incarnation, p.id, partFrame, &p.out, f.offset)
				} else {
					err = c.read(ctx, p, &r, f, reserve)
				}
				if err != nil {
					c.send(to.Incarnation, p.id, &frame{kind: cancelFrame})
					return nil, err
				}
			}
			if r.begun && len(r.data) == r.size {
				return r.result(to.Node)
			}
		case <-ctx.Done():
			c.send(to.Incarnation, p.id, &frame{kind: cancelFrame})
			return nil, ctx.Err()
		case <-p.lost:
			return nil, &MovedError{Shard: shard, Begun: !p.unbegun.Load(),
				Silent: c.config.Clock() - time.Duration(p.heard.Load())}
		}
	}
}

// reply is the reply to a call, as far as it has come.
type reply struct {
	shard   int
	begun   bool
	status  status
	data    []byte
	size    int
	granted int
}

// read takes a part of the reply, and grants more.
func (c *Cluster) read(ctx context.Context, p *pending, r *reply, f frame, reserve replay.Reserve) error {
	defer func() { p.rest.Store(int64(c.config.Clock())) }()
	switch {
	case f.kind == replyFrame && !r.begun:
		r.begun, r.status, r.data, r.size = true, f.status, f.data, int(f.size)
		if reserve != nil && f.status == ended {
			if err := reserve(ctx, int64(f.size)); err != nil {
				return err
			}
		}
		if len(r.data) == r.size {
			return nil
		}
		r.data = append(make([]byte, 0, r.size), r.data...)
	case f.kind == restFrame && r.begun && f.offset == uint64(len(r.data)) && len(f.data) > 0 &&
		len(r.data)+len(f.data) <= r.size:
		r.data = append(r.data, f.data...)
	default:
		return &MovedError{Shard: r.shard, Begun: true} // a part was lost
	}
	if r.granted < r.size && r.granted-len(r.data) < window/2 {
		r.granted = min(len(r.data)+window, r.size)
		p.more.Store(true)
		return c.send(p.to.Incarnation, p.id, &frame{kind: takeFrame, offset: uint64(r.granted)})
	}
	return nil
}

// result returns the data or the error of the reply.
func (r *reply) result(node string) ([]byte, error) {
	switch r.status {
	case ended:
		return r.data, nil
	case notOwner, noService: // a node just begun does not have all of them yet
		return nil, &MovedError{Shard: r.shard}
	case moved:
		return nil, &MovedError{Shard: r.shard, Begun: true}
	case busy:
		return nil, &BusyError{node}
	}
	return nil, &RemoteError{node, string(r.data)}
}

// sendParts sends parts of a body as far as they are granted.
func (c *Cluster) sendParts(to string, id uint64, k kind, out *outgoing, granted uint64) error {
	for out.sent < int(min(granted, uint64(len(out.data)))) {
		n := min(c.room(), len(out.data)-out.sent)
		f := frame{kind: k, offset: uint64(out.sent), data: out.data[out.sent : out.sent+n]}
		if err := c.send(to, id, &f); err != nil {
			return err
		}
		out.sent += n
	}
	if out.sent == len(out.data) {
		*out = outgoing{} // the caller waiting for the reply holds it no longer
	}
	return nil
}

// unasked returns the number of bytes of a body of a size for the first message. The rest is sent when the receiver has
// counted it.
func (c *Cluster) unasked(size int) int { return min(size, maxUnasked, c.room()) }

// room returns the number of bytes of a body for one message.
func (c *Cluster) room() int {
	return max(min(c.config.Network.MaxData(), window/2)-overhead-maxService, 1)
}

func (c *Cluster) send(to string, id uint64, f *frame) error {
	data := f.append(make([]byte, 0, overhead+len(f.service)+len(f.data)))
	return c.config.Network.Send(Message{From: c.incarnation, To: to, ID: id, Data: data})
}

// announce has all nodes ask for the owner of a shard.
func (c *Cluster) announce(shard int) { c.send(allNodes, 0, &frame{kind: ownerFrame, shard: shard}) }

// outgoing is a body sent in parts.
type outgoing struct {
	data []byte
	sent int
}

const (
	// maxBody is the most bytes of a request or reply: more than the largest task a gateway may keep.
	maxBody = 256 << 20
	// maxUnasked is the number of bytes of a body sent before the receiver asks for them. So little is not counted there:
	// the number of calls bounds it.
	maxUnasked = 32 << 10
	// window is the greatest number of bytes of a body on their way.
	window = 2 << 20
)
