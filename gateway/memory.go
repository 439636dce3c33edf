// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/translate"
)

// The memory of a call is counted: first its body, until it is decoded; then its message and the task, while the
// Partner executes the command; then its reply, until it is sent. A call waits for memory before it uses it.

// Hold takes memory for a body of n bytes and for its decoded form. A front calls it before it reads more than
// limit.Free bytes, and each time before it reads more than n bytes. It may wait until ctx ends or the configuration is
// replaced. The memory is counted for the peer, because the Leader named by the request is not known yet. There is none
// for a peer without the right to call at all.
func (g *Gateway) Hold(ctx context.Context, peer identity.Peer, r *Request, n int) error {
	if n <= limit.Free {
		return nil
	}
	if !r.held {
		peer, err := g.letsIn(r, peer)
		if err != nil {
			return err
		}
		leader := limit.Unverified
		if peer.Verified() {
			leader = peer.Leader()
		}
		r.holdFor(g.memory, leader)
	}
	return g.wait(ctx, &r.memory, 2*int64(n), g.memory.Patience)
}

// letsIn returns a peer as the Guard accepts it for a possible dialect of the request, or the reason why it accepts it
// for none.
func (g *Gateway) letsIn(r *Request, peer identity.Peer) (accepted identity.Peer, err error) {
	if len(r.matches) == 0 { // decoded by the front
		return g.config.Guard.Check(peer)
	}
	for i := range r.matches {
		if accepted, err = g.config.Guard.CheckIn(r.matches[i].dialect.Name(), peer); err == nil {
			break
		}
	}
	return accepted, err
}

// Drop gives back the body of the request, but for the begin.
func (r *Request) Drop() {
	if r.Body != nil && len(*r.Body) > BeginOfBody {
		begin := bytes.Clone((*r.Body)[:BeginOfBody])
		r.Body = &begin
	}
	r.memory.Release()
}

// Lend lends the request's memory while the front waits for the caller to read the reply. If others need this memory,
// abort is called, once: the front then has to give up. It is called by any goroutine, and must not wait. The front
// calls TakeBack when it waits no longer.
func (r *Request) Lend(abort func()) { r.memory.Lend(abort) }

// TakeBack ends Lend: abort is not called any more, nor is it being called.
func (r *Request) TakeBack() { r.memory.TakeBack() }

// holdFor counts memory for a Leader from now on.
func (r *Request) holdFor(b limit.Budget, leader string) {
	if !r.held || limit.Key(r.holder) != limit.Key(leader) {
		r.memory.Release()
		r.memory, r.held, r.holder = b.Lease(leader), true, leader
	}
}

// hold counts the memory of the exchange for its reader from now on.
func (x *exchange) hold() { x.in.holdFor(x.g.memory, x.reader()) }

// reader returns the Leader charged for the streams and the memory of the exchange.
func (x *exchange) reader() string { return x.call.ReadBy() }

// wait waits until a lease holds n bytes of memory. It stops waiting after patience, when the caller leaves, and when
// the configuration is replaced.
func (g *Gateway) wait(ctx context.Context, l *limit.Lease, n int64, patience time.Duration) error {
	waiting, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(g.config.Streaming.Drain, done)()
	err := partner.WaitForMemory(waiting, l, n, patience)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// reserve implements replay.Reserve.
func (x *exchange) reserve(_ context.Context, n int64) error {
	if n > limit.Free {
		x.hold()
	}
	return x.g.holdMemory(x.ctx, &x.in.memory, n, x.call.Stream)
}

// holdMemory is replay.Reserve for a lease of a call.
func (g *Gateway) holdMemory(ctx context.Context, l *limit.Lease, n int64, stream bool) error {
	switch {
	case n == 0:
		l.Release()
	case n > limit.Free:
		patience := g.memory.Patience
		if stream {
			patience = g.config.Streaming.Patience
		}
		return g.wait(ctx, l, n, patience)
	}
	return nil
}

// releaseBody drops the body of a decoded request; the message is kept.
func (x *exchange) releaseBody() {
	if body := x.in.Body; body != nil && cap(*body) > limit.Free {
		x.req = translate.Request{Request: jsonrpc.Request{ID: bytes.Clone(x.req.ID)}}
		x.in.Body = nil
	}
	x.in.memory.Take(x.call.Message.Size() + x.call.Message.SpellingSize())
}

// execute executes the call, and takes the memory for its answer.
func (x *exchange) execute() (err error) {
	if err := x.complete(); err != nil {
		return err
	}
	if err := x.holdForOwner(); err != nil {
		return err
	}
	if x.result, err = x.carryOut(); err != nil {
		return err
	}
	x.hold()
	return fit(&x.call, &x.result, &x.in.memory, func(get *Call) (Result, error) {
		return x.g.Execute(x.ctx, get, x.reserve)
	})
}

// holdForOwner takes the memory for the form of a large message on its way to the owner of its shard.
func (x *exchange) holdForOwner() error {
	n := x.call.Message.Size()
	if n <= limit.Free/2 {
		return nil
	}
	if err := x.g.ready(x.ctx); err != nil {
		return err
	}
	if x.g.tasks.owners != nil && x.g.in(x.call.Leader) == nil {
		x.hold()
		x.in.memory.Take(2 * n) // the body has held as much
	}
	return nil
}

// grow takes the memory for a result of about a size and for its encoding, after the call's wait for it. It returns the
// buffer to append the reply to.
func (x *exchange) grow(size int64) []byte {
	dst := *x.in.reply
	if size <= limit.Free {
		return dst
	}
	x.hold()
	x.in.memory.Take(2 * size)
	return slices.Grow(dst, int(size+size/16))
}
