// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/aip-gateway/aip-gateway/internal/protobytes"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

const (
	// A stream is read ahead by so many messages, and so many bytes, without the last message.
	maxAhead      = 64
	maxAheadBytes = 64 << 10

	// linger is the longest wait for the end of a call after its last message. Then it is cut.
	linger = 20 * time.Millisecond
)

// exchange is one call. A goroutine makes it and reads the answer; Close waits for it. It implements upstream.Exchange.
type exchange struct {
	route       *route
	ctx         context.Context // of the driver
	cancel      context.CancelFunc
	streams     bool
	interrupt   *upstream.Interrupt // nil for none, and once it has ended a call
	idleTimeout time.Duration
	span        tracing.ClientSpan
	traced      http.Header // the trace, as header fields
	// introduction names to the agent the caller behind a request, and fields are those of the request alone.
	introduction, fields []translate.Field

	// Of the goroutine. They are read when begun is closed, and failure when messages is.
	begun      chan struct{} // closed when the answer begins, or the call has failed before
	messages   chan []byte   // closed at the end of the answer
	failure    error         // of connect; nil for a clean end
	status     int           // of HTTP, as the fields below; zero for no answer
	media      string
	retryAfter string
	ahead      atomic.Int64  // bytes in messages
	space      chan struct{} // a message was taken
	done       chan struct{} // closed when the goroutine has ended

	received bool // of an answer without a stream: its only message; of a stream: any message
	taken    bool // the only message was returned
}

type exchangeKey struct{}

// Open implements upstream.Route.
func (r *route) Open(ctx context.Context, req *upstream.Request) (upstream.Exchange, error) {
	if ctx.Err() != nil {
		return nil, upstream.Ended(ctx)
	}
	body := req.Payload()
	x := &exchange{
		route: r, ctx: ctx, interrupt: req.Interrupt, idleTimeout: req.IdleTimeout, fields: req.Fields,
		streams: req.Operation == translate.SendStream || req.Operation == translate.Resubscribe,
		begun:   make(chan struct{}), messages: make(chan []byte, maxAhead),
		space: make(chan struct{}, 1), done: make(chan struct{}),
	}
	calling, cancel := context.WithCancel(ctx)
	x.cancel = cancel
	if i := r.transport.config.Introducer; i != nil {
		x.introduction = i.Introduce(req)
	}
	x.traced, x.span = r.startSpan(ctx)
	go x.call(context.WithValue(calling, exchangeKey{}, x), body)
	return x, nil
}

// call makes the call and reads the answer.
func (x *exchange) call(ctx context.Context, body []byte) {
	defer close(x.done)
	defer close(x.messages)
	// It returns when the answer has begun.
	stream, err := x.route.client.CallServerStream(ctx, connect.NewRequest(&protobytes.Message{Data: body}))
	if err != nil {
		x.failure = err
		close(x.begun)
		return
	}
	defer stream.Close()
	close(x.begun)
	for stream.Receive() {
		if !x.put(ctx, stream.Msg().Data) {
			break
		}
	}
	x.failure = stream.Err()
}

// put hands a message over, as soon as there is space. It reports false when ctx is done.
func (x *exchange) put(ctx context.Context, message []byte) bool {
	for x.ahead.Load() > maxAheadBytes {
		select {
		case <-x.space:
		case <-ctx.Done():
			return false
		}
	}
	x.ahead.Add(int64(len(message)))
	select {
	case x.messages <- message:
		return true
	case <-ctx.Done():
		return false
	}
}

// Begin implements upstream.Exchange. A call answered by a status has begun: Next returns its error.
func (x *exchange) Begin() error {
	if _, _, err := receive(x, x.begun); err != nil {
		return err
	}
	x.span.Status(x.status)
	if x.status == 0 { // there was no answer
		<-x.done
		return x.failed(x.failure, "before it answered")
	}
	if x.streams {
		x.interrupt = nil
	}
	return nil
}

// receive waits for the next value of a channel. The interrupt ends only one call.
func receive[T any](x *exchange, from <-chan T) (v T, ok bool, err error) {
	v, ok, err = upstream.Receive(x.ctx, from, x.interrupt, x.idleTimeout)
	if err == upstream.ErrInterrupted {
		x.interrupt = nil
	}
	return v, ok, err
}

// Streams implements upstream.Exchange.
func (x *exchange) Streams() bool { return x.streams }

// Next implements upstream.Exchange.
func (x *exchange) Next() (upstream.Message, error) {
	if x.taken {
		return upstream.Message{}, io.EOF
	}
	message, ok, err := receive(x, x.messages)
	switch {
	case err != nil:
		return upstream.Message{}, err
	case !ok:
		return upstream.Message{}, x.failed(x.failure, "in the middle of its answer")
	}
	x.ahead.Add(-int64(len(message)))
	select {
	case x.space <- struct{}{}:
	default:
	}
	x.received, x.taken = true, !x.streams
	return upstream.Message{Data: message}, nil
}

// Ready implements upstream.Exchange.
func (x *exchange) Ready() bool { return len(x.messages) > 0 }

// SetIdleTimeout implements upstream.Exchange.
func (x *exchange) SetIdleTimeout(d time.Duration) { x.idleTimeout = d }

// Explain implements upstream.Exchange: a message says it all.
func (x *exchange) Explain(err error) error { return err }

// Close implements upstream.Exchange.
func (x *exchange) Close(err error) {
	if err == nil {
		timer := time.NewTimer(linger)
		select {
		case <-x.done:
		case <-timer.C:
		}
		timer.Stop()
	}
	x.cancel()
	<-x.done
	if errors.Is(err, upstream.ErrAbandoned) {
		err = nil
	}
	x.span.End(err)
}
