// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// After the last event of a stream, how much of its end is awaited, and for how long, so that the connection can be
// used again. Some agents never end it.
const (
	linger      = 20 * time.Millisecond
	lingerBytes = 1 << 10
)

// replies holds the answers that are no streams while they are read.
var replies = bufpool.Pool{Largest: 256 << 10}

// exchange is one request and its answer, which arrives while it is read. It implements upstream.Exchange.
type exchange struct {
	config   *Config
	http     *http.Transport
	parent   context.Context
	ctx      context.Context
	cancel   context.CancelCauseFunc
	idle     *time.Timer   // fires when nothing arrives for too long
	patience time.Duration // of idle; 0 for none
	span     span
	out      *http.Request
	res      *http.Response // nil until the answer has begun
	failure  error          // instead of res

	interrupt *upstream.Interrupt // nil for none, and once it has ended a call
	step      chan struct{}       // closed when what another goroutine waits for is there; nil for nothing

	events *sseproxy.Reader // of a stream
	body   *[]byte          // of an answer that is no stream, from the pool; nil until it is read
	reply  []byte           // the answer in body
	whole  bool             // the answer was returned
}

var errSilent = errors.New("httptransport: the agent is silent")

// open prepares a request, which Begin sends.
func (r *route) open(ctx context.Context, req *upstream.Request) (*exchange, error) {
	t := r.transport
	x := &exchange{config: &t.config, http: t.http, parent: ctx, patience: req.IdleTimeout, interrupt: req.Interrupt}
	body := req.Body
	if req.Encode != nil {
		body = req.Encode()
	}
	method, target := r.target(req)
	if method == http.MethodGet {
		body = nil
	}
	header := t.unary
	if streams(req.Operation) {
		header = t.event
	}
	header, x.span = t.startSpan(ctx, method, body, header)
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.idle = time.AfterFunc(x.patience, func() { x.cancel(errSilent) })
	x.out = (&http.Request{Method: method, URL: target, Host: t.host, Header: header}).WithContext(x.ctx)
	if len(body) > 0 {
		x.out.ContentLength = int64(len(body))
		x.out.Body, x.out.GetBody = content(body, req.Encode)
	}
	return x, nil
}

// Begin implements upstream.Exchange. The transport may read the body even after the answer has arrived.
func (x *exchange) Begin() error {
	if err := x.interruptible(func() { x.res, x.failure = x.http.RoundTrip(x.out) }); err != nil {
		return err
	}
	if x.failure != nil {
		return x.broken(x.failure, "before it answered")
	}
	x.span.status(x.res.StatusCode)
	if x.mediaType() == "text/event-stream" {
		max := x.config.MaxEvent
		x.events = sseproxy.NewReader(x, sseproxy.Limits{Line: max + len("data: "), Event: max})
	}
	return nil
}

// interruptible has step done, by another goroutine where the wait for it may be interrupted. A step that was
// interrupted continues: then the next call waits for it.
func (x *exchange) interruptible(step func()) error {
	if x.step == nil && x.interrupt == nil {
		step()
		return nil
	}
	if x.step == nil {
		done := make(chan struct{})
		x.step = done
		go func() {
			defer close(done)
			step()
		}()
	}
	if x.interrupt == nil {
		<-x.step
		x.step = nil
		return nil
	}
	ended := make(chan struct{})
	x.interrupt.Wake(func() { close(ended) })
	defer func(i *upstream.Interrupt) { i.Wake(nil) }(x.interrupt)
	var until <-chan time.Time
	if at := x.interrupt.Until; !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		until = timer.C
	}
	select {
	case <-x.step:
		x.step = nil
		return nil
	case <-ended:
	case <-until:
	}
	x.interrupt = nil
	if x.parent.Err() != nil { // canceled before End was called
		<-x.step
		x.step = nil
		return nil
	}
	return upstream.ErrInterrupted
}

// Streams implements upstream.Exchange.
func (x *exchange) Streams() bool { return x.events != nil }

// Next implements upstream.Exchange.
func (x *exchange) Next() (upstream.Message, error) {
	switch {
	case x.events != nil:
		return x.nextEvent()
	case x.whole:
		return upstream.Message{}, io.EOF
	}
	if err := x.interruptible(func() { x.reply, x.failure = x.readAll() }); err != nil {
		return upstream.Message{}, err
	}
	x.whole = true
	return upstream.Message{Data: x.reply}, x.failure
}

func (x *exchange) nextEvent() (upstream.Message, error) {
	ev, err := x.events.Next()
	switch {
	case err == nil:
		return upstream.Message{Name: ev.Name, Data: ev.Data}, nil
	case errors.Is(err, sseproxy.ErrTooLarge):
		return upstream.Message{},
			task.Errorf(task.InvalidAgentResponse, "an event of the agent is larger than %d bytes", x.config.MaxEvent)
	case x.parent.Err() != nil || context.Cause(x.ctx) == errSilent:
		return upstream.Message{}, x.broken(err, "")
	}
	return upstream.Message{},
		upstream.Failed(task.InvalidAgentResponse, upstream.StreamCut, err, "the agent's stream was cut")
}

// readAll reads the whole answer. It is valid until the exchange is closed.
func (x *exchange) readAll() ([]byte, error) {
	x.body = replies.Get()
	max := x.config.MaxReply
	if n := x.res.ContentLength; n > int64(max) {
		return nil, tooLarge(max)
	}
	var err error
	if *x.body, err = bufpool.ReadAll(*x.body, io.LimitReader(x, int64(max)+1)); err != nil {
		return nil, x.broken(err, "in the middle of its answer")
	}
	if len(*x.body) > max {
		return nil, tooLarge(max)
	}
	return *x.body, nil
}

func tooLarge(max int) error {
	return task.Errorf(task.InvalidAgentResponse, "the agent's answer is larger than %d bytes", max)
}

// Ready implements upstream.Exchange.
func (x *exchange) Ready() bool { return x.events != nil && x.events.Ready() }

// SetIdleTimeout implements upstream.Exchange.
func (x *exchange) SetIdleTimeout(d time.Duration) {
	if x.patience = d; d > 0 {
		x.idle.Reset(d)
	} else {
		x.idle.Stop()
	}
}

// Read reads the body of the answer. Any byte restarts the idle timeout.
func (x *exchange) Read(p []byte) (int, error) {
	n, err := x.res.Body.Read(p)
	if n > 0 && x.patience > 0 {
		x.idle.Reset(x.patience)
	}
	return n, err
}

// Close implements upstream.Exchange. The connection is used again if the answer was read to its end.
func (x *exchange) Close(err error) {
	if x.step != nil {
		x.cancel(nil)
		<-x.step
	}
	if err == nil && x.events != nil {
		x.idle.Reset(linger)
		io.Copy(io.Discard, io.LimitReader(x.res.Body, lingerBytes))
	}
	if x.events != nil {
		x.events.Close()
	}
	x.idle.Stop()
	if x.res != nil {
		x.res.Body.Close()
	}
	if x.body != nil {
		replies.Put(x.body)
		x.body = nil
	}
	x.cancel(nil)
	if errors.Is(err, upstream.ErrAbandoned) {
		err = nil
	}
	x.span.end(err)
}

// mediaType returns the answer's media type, for comparison and for people.
func (x *exchange) mediaType() string {
	t, _, err := mime.ParseMediaType(x.res.Header.Get("Content-Type"))
	if err != nil || len(t) > 64 {
		return "no media type"
	}
	return t
}
