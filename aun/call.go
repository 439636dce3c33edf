// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// Call sends a request and waits for its answer. params is a JSON object. An error from the other end is an *Error, the
// end of the connection meanwhile a *LostError. After ctx has ended, the answer is ignored.
func (c *Conn) Call(ctx context.Context, method string, params []byte) (gjson.Result, error) {
	p, err := c.Begin(ctx, method, params)
	if err != nil {
		return gjson.Result{}, err
	}
	select {
	case <-p.Done():
		return p.Answer()
	case <-ctx.Done():
		p.Abandon()
		return gjson.Result{}, &LostError{Sent: true, Err: context.Cause(ctx)}
	}
}

// Begin sends a request and returns its answer to come. If too many calls are under way it waits, until ctx ends. The
// Pending must be waited for, or abandoned.
func (c *Conn) Begin(ctx context.Context, method string, params []byte) (*Pending, error) {
	select {
	case c.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, &LostError{Err: context.Cause(ctx)}
	case <-c.done:
		return nil, &LostError{Err: c.Err()}
	}
	p := &Pending{conn: c, done: make(chan struct{})}
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		<-c.calls
		return nil, &LostError{Err: c.ended}
	}
	c.next++
	p.id = c.next
	c.waiting[p.id] = p
	c.mu.Unlock()

	id := strconv.AppendUint(make([]byte, 0, 20), p.id, 10)
	frame := jsonrpc.BeginRequest(make([]byte, 0, 96+len(method)+len(params)), id, method)
	if err := c.write(ctx, jsonrpc.End(append(frame, params...))); err != nil {
		p.Abandon()
		return nil, err
	}
	return p, nil
}

// answered removes the pending call with an id, and returns it; nil if there is none.
func (c *Conn) answered(id jsonrpc.ID) *Pending {
	n, err := strconv.ParseUint(string(id), 10, 64)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.waiting[n]
	delete(c.waiting, n)
	return p
}

// Pending is a call under way.
type Pending struct {
	conn   *Conn
	id     uint64
	done   chan struct{}
	result gjson.Result
	err    error
}

// Done is closed when there is an answer, or when the connection has ended without one.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Answer returns the result, owned by the caller, or the error. It is called after Done is closed.
func (p *Pending) Answer() (gjson.Result, error) { return p.result, p.err }

// Abandon ends the call: its answer will be ignored.
func (p *Pending) Abandon() {
	c := p.conn
	c.mu.Lock()
	_, waits := c.waiting[p.id]
	delete(c.waiting, p.id)
	c.mu.Unlock()
	if waits {
		<-c.calls
	}
}

// finish sets the answer. It is called once, by the goroutine taking p out of the pending calls.
func (p *Pending) finish(result gjson.Result, err error) {
	p.result, p.err = result, err
	close(p.done)
	<-p.conn.calls
}
