// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/internal/http1"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// largeBody is the size, in bytes, of a body not written together with the head. To write it may take as long as the
// agent takes to read it, and the agent may answer before. A smaller one finds room in the system's buffer, so the
// write does not wait.
const largeBody = 16 << 10

// afterFailedWrite is the longest wait for an answer after the request could not be written: it may name the reason.
const afterFailedWrite = time.Second

// requests holds the heads of requests, with their bodies if these are small, until they are written; bodies holds the
// bodies of messages, as long.
var (
	requests = bufpool.Pool{Largest: 2 * largeBody}
	bodies   = bufpool.Pool{Largest: 256 << 10}
)

// request is a request as it is sent to the agent.
type request struct {
	head   *[]byte // from the pool, with the body if it is small; nil once it is sent
	large  []byte  // a large body; nil once it is being sent
	pooled *[]byte // the buffer of large, if it is from the pool
}

func (r *request) release() {
	if r.head != nil {
		requests.Put(r.head)
		r.head = nil
	}
	r.releaseBody()
}

func (r *request) releaseBody() {
	if r.pooled != nil {
		bodies.Put(r.pooled)
	}
	r.large, r.pooled = nil, nil
}

// setBody takes the body of a request.
func (r *request) setBody(of *upstream.Request) {
	if r.large = of.Body; of.Encode != nil {
		r.pooled = bodies.Get()
		*r.pooled = of.Encode(*r.pooled)
		r.large = *r.pooled
	}
}

// open begins an exchange, and sends the request if there is an idle connection.
func (r *route) open(ctx context.Context, req *upstream.Request) (*exchange, error) {
	t := r.transport
	if ctx.Err() != nil {
		return nil, upstream.Ended(ctx)
	}
	method, uri := r.target(req)
	x := &exchange{transport: t, ctx: ctx, interrupt: req.Interrupt, idleTimeout: req.IdleTimeout}
	if method != http.MethodGet {
		x.request.setBody(req)
	}
	body := x.request.large
	fields := &t.unary
	if streams(req.Operation) {
		fields = &t.event
	}
	var introduction []translate.Field
	if t.config.Introducer != nil {
		introduction = t.config.Introducer.Introduce(req)
	}
	x.request.head = requests.Get()
	head := appendRequestLine(*x.request.head, method, uri)
	var traced http.Header
	if traced, x.span = t.startSpan(ctx, method, body, fields.header); traced != nil {
		head = appendFields(head, t.host, traced)
	} else {
		head = append(head, fields.text...)
	}
	for _, fields := range [...][]translate.Field{introduction, req.Fields} {
		for i := range fields {
			head = append(append(append(head, fields[i].Name...), ": "...), fields[i].Value...)
			head = append(head, "\r\n"...)
		}
	}
	head = appendLength(head, method, len(body))
	if len(body) <= largeBody {
		head = append(head, body...)
		x.request.releaseBody()
	}
	*x.request.head = head
	if conn := t.pool.Get(); conn != nil {
		if err := x.send(conn); err != nil {
			failure := x.broken(err, "before it answered")
			x.Close(failure)
			return nil, failure
		}
	}
	return x, nil
}

// send sends the request on a connection. If the server has received nothing of it because the connection was closed
// while it was idle, send takes another one; without one, x.conn stays nil and Begin opens one.
func (x *exchange) send(conn *http1.Conn) error {
	for conn != nil {
		conn.Begin(x.idleTimeout)
		n, err := conn.Write(*x.request.head)
		if err != nil && n == 0 && conn.Reused() {
			conn.Close()
			conn = x.transport.pool.Get()
			continue
		}
		x.conn = conn
		switch {
		case err == nil && x.request.large != nil:
			if rest := x.request.large[conn.WriteSome(x.request.large):]; len(rest) > 0 {
				x.sendBody(rest, x.request.pooled)
				x.request.pooled = nil
			}
		case errors.Is(err, http1.ErrSilent):
			return err
		case err != nil:
			conn.SetIdleTimeout(min(x.idleTimeout, afterFailedWrite))
		}
		x.request.release()
		return nil
	}
	return nil
}

// sendBody has another goroutine write a body, and give its pooled buffer back, if there is one. The body is kept only
// until it is written.
func (x *exchange) sendBody(body []byte, pooled *[]byte) {
	conn, done := x.conn, make(chan struct{})
	x.sending = done
	go func() {
		defer close(done)
		conn.Write(body) // if it fails, so does the wait for the answer
		if pooled != nil {
			bodies.Put(pooled)
		}
	}()
}

// dialing is a connection opened by another goroutine, because the wait for it may be interrupted.
type dialing struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when conn or err is set
	conn   *http1.Conn
	err    error
}

// connect opens a connection. Without an error, the caller must send the request on it.
func (x *exchange) connect() (*http1.Conn, error) {
	if x.interrupt == nil && x.dialing == nil {
		return x.transport.connect(x.ctx)
	}
	if x.dialing == nil {
		ctx, cancel := context.WithCancel(x.ctx)
		d := &dialing{cancel: cancel, done: make(chan struct{})}
		x.dialing = d
		go func() {
			defer close(d.done)
			d.conn, d.err = x.transport.connect(ctx)
		}()
	}
	d := x.dialing
	if x.interrupt != nil && !x.awaitDial() {
		return nil, http1.ErrStopped
	}
	<-d.done
	x.dialing = nil
	d.cancel()
	return d.conn, d.err
}

// awaitDial waits for the connection being opened. It reports false if the interrupt ends before.
func (x *exchange) awaitDial() bool {
	ended := make(chan struct{})
	x.interrupt.Wake(func() { close(ended) })
	defer x.interrupt.Wake(nil)
	var until <-chan time.Time
	if at := x.interrupt.Until; !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		until = timer.C
	}
	select {
	case <-x.dialing.done:
		return true
	case <-ended:
	case <-until:
	}
	return false
}

// abandonDial stops the opening of a connection.
func (x *exchange) abandonDial() {
	if d := x.dialing; d != nil {
		x.dialing = nil
		d.cancel()
		<-d.done
		if d.conn != nil {
			d.conn.Close()
		}
	}
}

// connect opens a connection to the agent.
func (t *Transport) connect(ctx context.Context) (*http1.Conn, error) {
	conn, err := t.dialer.connect(ctx)
	if err != nil {
		return nil, err
	}
	return http1.NewConn(conn), nil
}
