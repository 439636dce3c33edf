// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/protobytes"
	"github.com/aip-gateway/aip-gateway/task"
)

// Package connect implements gRPC: its framing, deadlines, compression and trailers. On the wire, a method answered
// once is a stream of one message, so one handler serves all methods.

// isGRPC reports whether a request is one of gRPC.
func isGRPC(r *http.Request) bool {
	v := r.Header["Content-Type"]
	return len(v) > 0 && (v[0] == "application/grpc" || v[0] == "application/grpc+proto")
}

// newGRPC returns the handler of all requests of gRPC.
func (f *Front) newGRPC() *connect.Handler {
	gunzip, gzip := protobytes.Gunzip(f.gateway.MaxBody())
	return connect.NewServerStreamHandler("", answerGRPC,
		connect.WithCodec(protobytes.Codec{}),
		connect.WithReadMaxBytes(f.gateway.MaxBody()),
		connect.WithCompression(protobytes.Gzip, gunzip, gzip),
		connect.WithCompressMinBytes(math.MaxInt), // compressed requests are read, but no answer is compressed
	)
}

// grpcCall is a request of gRPC under way.
type grpcCall struct {
	front    *Front
	exchange *exchange // nil once it was released
	summary  *gateway.Summary
	writer   *grpcWriter
	received *bodyTimeout
}

type grpcCallKey struct{}

// serveGRPC answers a request of gRPC.
func (e *exchange) serveGRPC(w http.ResponseWriter, r *http.Request) {
	f := e.front
	if f.gateway.Draining() && r.ProtoMajor < 3 {
		w.Header().Set("Connection", "close") // HTTP/2 says GOAWAY, and the call is answered
	}
	e.peer = e.authenticate(r)
	describe(&e.request, r)
	e.resume()
	e.request.Transport = "gRPC"
	c := &grpcCall{
		front: f, exchange: e, summary: e.summary, writer: newGRPCWriter(w, f.config.WriteTimeout),
		received: limitReading(w, f.config.BodyTimeout),
	}
	defer func() { // after a panic, too
		c.received.end()
		c.release()
	}()
	e.ctx = context.WithValue(traced(r), grpcCallKey{}, c)
	r = r.WithContext(e.ctx)
	r.Body = &grpcBody{ReadCloser: r.Body, call: c}
	defer guardConnection(e.ctx, f.config.WriteTimeout)()
	f.grpc.ServeHTTP(c.writer, r)
}

// release gives back everything the request holds.
func (c *grpcCall) release() {
	if c.exchange != nil {
		c.exchange.release()
		c.exchange = nil
	}
}

// answerGRPC answers a request once its message was received.
func answerGRPC(
	ctx context.Context, r *connect.Request[protobytes.Message], out *connect.ServerStream[protobytes.Message],
) error {
	c := ctx.Value(grpcCallKey{}).(*grpcCall)
	c.received.end()
	body := r.Msg.Data
	r.Msg.Data = nil // a stream may be open for days
	sink := &grpcSink{writer: c.writer, out: out}
	stream, err := c.dispatch(ctx, body, sink)
	if stream == nil {
		return err
	}
	defer stream.Close()
	if err := sink.open(); err != nil {
		return err
	}
	c.writer.taken = stream.Taken
	stream.Run(sink)
	outcome := stream.Outcome()
	*c.summary = outcome.Summary
	switch why := outcome.Why; {
	case sink.failure != nil:
		return errorOfStatus(sink.failure)
	case ctx.Err() != nil:
		return ended(ctx)
	case why != nil: // a clean end would mean that there is nothing more
		return connect.NewError(connect.CodeUnavailable, errors.New("the stream was cut; subscribe to the task again"))
	}
	return nil
}

// dispatch has the gateway answer a request, sends a reply, and returns the stream after it. It releases the request.
func (c *grpcCall) dispatch(ctx context.Context, body []byte, sink *grpcSink) (*gateway.Stream, error) {
	e := c.exchange
	defer c.release()
	if err := e.hold(len(body)); err != nil { // it may have been compressed
		return nil, c.refuse(err)
	}
	e.request.Body = &body
	a := c.front.gateway.Dispatch(ctx, e.peer, &e.request)
	*c.summary = a.Summary
	switch {
	case a.Err != nil:
		return nil, c.failed(a)
	case a.Reply == nil && a.Stream == nil: // the caller has left, or its deadline is over
		return nil, ended(ctx)
	case a.Reply != nil:
		if err := sink.send(a.Reply); err != nil {
			if a.Stream != nil {
				a.Stream.Close()
			}
			return nil, err
		}
	}
	return a.Stream, nil
}

// refuse returns the answer to a request without a received message.
func (c *grpcCall) refuse(err error) error {
	a := c.front.gateway.Refuse(c.exchange.ctx, c.exchange.peer, &c.exchange.request, err)
	*c.summary = a.Summary
	return c.failed(a)
}

// ended is the error of a call after the end of its context.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return connect.NewError(connect.CodeDeadlineExceeded,
			errors.New("the deadline is over; the task continues, and can be read by its id"))
	}
	return connect.NewError(connect.CodeCanceled, errors.New("the caller has left"))
}

// failed returns the error of an answer. If the caller must prove its identity, the metadata names the ways.
func (c *grpcCall) failed(a gateway.Answer) error {
	e := errorOfStatus(a.Reply)
	if e.Code() == connect.CodeUnauthenticated {
		// In the header, since package http drops such a field of a trailer. Nothing was sent yet.
		c.writer.Header()["Www-Authenticate"], _ = c.front.challenge(&a)
	}
	return e
}

// errorOfStatus returns the error of an encoded google.rpc.Status.
func errorOfStatus(encoded []byte) *connect.Error {
	st := new(status.Status)
	if err := proto.Unmarshal(encoded, st); err != nil {
		return connect.NewError(connect.CodeInternal, errors.New("internal error"))
	}
	e := connect.NewError(connect.Code(st.Code), errors.New(st.Message))
	for _, d := range st.Details {
		if detail, err := connect.NewErrorDetail(d); err == nil {
			e.AddDetail(detail)
		}
	}
	return e
}

// grpcBody is the body of a request of gRPC. It takes memory before it is read.
type grpcBody struct {
	io.ReadCloser
	call *grpcCall
	read int
}

// Read implements io.Reader.
func (b *grpcBody) Read(p []byte) (int, error) {
	if e := b.call.exchange; e != nil {
		if err := e.hold(min(b.read+len(p), b.call.front.gateway.MaxBody()+1)); err != nil {
			return 0, b.call.refuse(err)
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	if b.call.exchange != nil && task.KindOf(err) == task.LimitExceeded { // of a Preview
		err = b.call.refuse(err)
	}
	return n, err
}
