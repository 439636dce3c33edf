// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// The memory of a call is counted: first its body, until it is decoded; then its message and the task, while the
// Partner executes the command; then its reply, until it is sent. A call waits for memory before it uses it.

// Hold takes memory for a body of n bytes and for what is decoded from it. A front calls it before it reads more than
// quota.Free bytes, and each time before it reads more than that. It may wait until ctx ends or the configuration is
// replaced. The memory is counted for the peer, because the Leader that the request names is not known yet.
func (g *Gateway) Hold(ctx context.Context, peer identity.Peer, r *Request, n int) error {
	if n <= quota.Free {
		return nil
	}
	if !r.held {
		leader := quota.Unverified
		if peer, err := g.config.Guard.Check(peer); err == nil && peer.Verified() {
			leader = peer.Leader()
		}
		r.holdFor(g.memory, leader)
	}
	return g.wait(ctx, &r.memory, 2*int64(n), g.memory.Patience)
}

// Lend says that the front waits for the caller to read the reply. If others need the memory that the request holds,
// abort is called, once: the front then has to give up. It is called by any goroutine, and must not wait. The front
// calls TakeBack when it waits no longer.
func (r *Request) Lend(abort func()) { r.memory.Lend(abort) }

// TakeBack ends Lend: abort is not called any more, nor is it being called.
func (r *Request) TakeBack() { r.memory.TakeBack() }

// holdFor counts memory for a Leader from now on.
func (r *Request) holdFor(b quota.Budget, leader string) {
	if !r.held || quota.Key(r.holder) != quota.Key(leader) {
		r.memory.Release()
		r.memory, r.held, r.holder = b.Lease(leader), true, leader
	}
}

// hold counts the memory of the exchange for who reads from now on.
func (x *exchange) hold() { x.in.holdFor(x.g.memory, x.reader()) }

// reader returns the Leader for whom the streams and the memory of the exchange count.
func (x *exchange) reader() string { return cmp.Or(x.in.Reader, x.call.Leader) }

// wait waits until a lease holds n bytes of memory. It stops waiting after patience, when the caller leaves, and when
// the configuration is replaced.
func (g *Gateway) wait(ctx context.Context, l *quota.Lease, n int64, patience time.Duration) error {
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
	switch {
	case n == 0:
		x.in.memory.Release()
	case n > quota.Free:
		x.hold()
		patience := x.g.memory.Patience
		if x.call.Stream {
			patience = x.g.config.Streaming.Patience
		}
		return x.g.wait(x.ctx, &x.in.memory, n, patience)
	}
	return nil
}

// releaseBody drops the body of a request that has been decoded; the message is kept.
func (x *exchange) releaseBody() {
	if body := x.in.Body; body != nil && cap(*body) > quota.Free {
		x.req = translate.Request{Request: jsonrpc.Request{ID: bytes.Clone(x.req.ID)}}
		x.in.Body = nil
	}
	x.in.memory.Take(x.call.Message.Size())
}

// execute executes the call, and takes the memory for the task that answers a command and for its encoding. If there is
// not enough for what the turn has produced, the task is dropped, and read again when there is.
func (x *exchange) execute() (err error) {
	if err := x.complete(); err != nil {
		return err
	}
	c, t := &x.call, &x.result.Task
	x.result, err = x.carryOut()
	if err != nil || c.Op != translate.Command || c.Message.Command == task.Get || c.Stream {
		return err
	}
	x.hold()
	if t.Size() <= quota.Free || x.in.memory.Hold(2*t.Size()) == nil {
		return nil
	}
	get := Call{Leader: c.Leader}
	get.Message = task.Message{Command: task.Get, TaskID: t.ID}
	*t = task.Task{}
	if x.result, err = x.g.Execute(x.ctx, &get, x.reserve); c.History == 0 {
		t.MessageHistory, t.StatusHistory = nil, nil
	}
	return err
}

// grow takes the memory for a result of about a size and for its encoding, for which the call has waited already. It
// returns the buffer to append the reply to.
func (x *exchange) grow(size int64) []byte {
	dst := *x.in.reply
	if size <= quota.Free {
		return dst
	}
	x.hold()
	x.in.memory.Take(2 * size)
	return slices.Grow(dst, int(size+size/16))
}
