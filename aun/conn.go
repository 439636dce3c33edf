// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/internal/bug"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// The sizes of the largest frames, in bytes.
const (
	MaxFrame      = 1_000_000 // in both directions
	MaxLoginFrame = 16 << 10  // from a client before its login
)

// Limits bound one connection. A zero stands for the default.
type Limits struct {
	Calls        int           // calls of this end waiting for an answer; more wait to be sent. Default: 16
	Requests     int           // requests of the other end under way; no frame is read while there are more. Default: 64
	WriteTimeout time.Duration // a frame that takes longer ends the connection. Default: 10 s

	// Stranger is true before the other end's login: until LoggedIn is called, its frames have at most MaxLoginFrame
	// bytes, and it has one request under way at a time.
	Stranger bool
}

func (l Limits) or() Limits {
	if l.Calls <= 0 {
		l.Calls = 16
	}
	if l.Requests <= 0 {
		l.Requests = 64
	}
	if l.WriteTimeout <= 0 {
		l.WriteTimeout = 10 * time.Second
	}
	return l
}

// A Handler receives requests and notifications from the other end of a connection.
type Handler interface {
	// Request answers a request, by Reply or Fail. It runs in a goroutine of its own, with a context ending with the
	// connection. A request without an answer at its return is answered with an internal error.
	Request(ctx context.Context, r *Request)

	// Event receives a notification. It is called by the reading goroutine, in the order of the frames, so it must not
	// wait. The handler owns params.
	Event(c *Conn, method string, params gjson.Result)
}

// Frames counts the frames of connections. The zero value is ready for use, by any number of goroutines at once.
type Frames struct{ Received, Sent atomic.Uint64 }

// Conn is one connection: frames of JSON-RPC over WebSocket, from either end. Serve reads it. All other methods may be
// called by any number of goroutines at once.
type Conn struct {
	ws      *websocket.Conn
	handler Handler
	limits  Limits
	log     *slog.Logger

	writing  chan struct{} // held by the writing goroutine
	calls    chan struct{} // one for each call under way
	requests chan struct{} // one for each request under way
	alone    chan struct{} // the same, of a stranger
	stranger atomic.Bool
	work     sync.WaitGroup
	last     atomic.Int64 // when the last frame arrived, in Unix nanoseconds
	frames   *Frames      // counts them; nil if nothing does

	mu      sync.Mutex
	next    uint64              // id of the next call
	waiting map[uint64]*Pending // calls waiting for their answers
	ended   *CloseError         // nil while the connection is open
	done    chan struct{}       // closed when ended is set
}

// NewConn returns a connection, the new owner of ws. Nothing is read before Serve.
func NewConn(ws *websocket.Conn, handler Handler, limits Limits, log *slog.Logger) *Conn {
	limits = limits.or()
	c := &Conn{ws: ws, handler: handler, limits: limits, log: log,
		writing: make(chan struct{}, 1), calls: make(chan struct{}, limits.Calls),
		requests: make(chan struct{}, limits.Requests), alone: make(chan struct{}, 1), waiting: make(map[uint64]*Pending),
		done: make(chan struct{})}
	c.last.Store(time.Now().UnixNano())
	ws.SetReadLimit(MaxFrame)
	if limits.Stranger {
		ws.SetReadLimit(MaxLoginFrame)
		c.stranger.Store(true)
	}
	return c
}

// LoggedIn lifts the limits of a stranger. It is called in the request of the login: the next frame is read after it.
func (c *Conn) LoggedIn() {
	c.ws.SetReadLimit(MaxFrame)
	c.stranger.Store(false)
}

// CountBy has the frames counted. It is called before Serve, and before anything is sent.
func (c *Conn) CountBy(f *Frames) { c.frames = f }

// Done is closed when the connection has ended. Requests may still be under way.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns the reason of the connection's end, and nil while it is open.
func (c *Conn) Err() *CloseError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// LastReceived returns when the last frame arrived.
func (c *Conn) LastReceived() time.Time { return time.Unix(0, c.last.Load()) }

// Serve reads frames and hands them to the handler until the connection ends, for example with ctx. It returns when
// everything started by the connection has ended. It is called once.
func (c *Conn) Serve(ctx context.Context) *CloseError {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { c.cut(&CloseError{Code: CloseAbnormal, Local: true, Err: ctx.Err()}) })
	for {
		frame, err := c.read()
		if err != nil {
			break
		}
		c.receive(ctx, frame)
	}
	stop()
	cancel()
	c.work.Wait()
	_ = c.ws.CloseNow()
	return c.Err()
}

// frames keeps the buffers for reading frames.
var frames = bufpool.Pool{Largest: 64 << 10}

// read returns the next frame, owned by the caller. After an error the connection has ended.
func (c *Conn) read() ([]byte, error) {
	kind, r, err := c.ws.Reader(context.Background())
	if err == nil && kind != websocket.MessageText {
		c.Close(CloseUnsupported, "only text frames are supported")
		return nil, c.Err()
	}
	if err == nil {
		buf := frames.Get()
		defer frames.Put(buf)
		if *buf, err = bufpool.ReadAll(*buf, r); err == nil {
			c.last.Store(time.Now().UnixNano())
			if c.frames != nil {
				c.frames.Received.Add(1)
			}
			return append([]byte(nil), *buf...), nil
		}
	}
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed):
		c.cut(&CloseError{Code: closed.Code, Reason: closed.Reason})
	case errors.Is(err, websocket.ErrMessageTooBig):
		c.cut(&CloseError{Code: CloseTooLarge, Local: true, Reason: "a frame was too large"})
	case errors.Is(err, io.EOF):
		c.cut(&CloseError{Code: CloseAbnormal, Err: io.ErrUnexpectedEOF})
	default:
		c.cut(&CloseError{Code: CloseAbnormal, Err: err})
	}
	return nil, err
}

// receive handles a frame.
func (c *Conn) receive(ctx context.Context, frame []byte) {
	m, err := jsonrpc.ParseMessage(frame, jsonrpc.Limits{Bytes: MaxFrame})
	switch {
	case err != nil && err.Code == jsonrpc.ParseError:
		c.Close(CloseInvalidData, "a frame is not JSON")
	case err != nil:
		if p := c.answered(err.ID); p != nil {
			p.finish(gjson.Result{}, fmt.Errorf("the answer is invalid: %w", err))
			return
		}
		c.refuse(ctx, err)
	case !m.IsRequest:
		c.receiveAnswer(&m.Response)
	case len(m.Request.ID) == 0:
		if p := m.Request.Params; p.Exists() && !p.IsObject() {
			return
		}
		c.handler.Event(c, m.Request.Method, m.Request.Params)
	default:
		if err := m.Request.Check(); err != nil {
			c.refuse(ctx, err)
			return
		}
		c.receiveRequest(ctx, &m.Request)
	}
}

func (c *Conn) receiveAnswer(m *jsonrpc.Response) {
	p := c.answered(m.ID)
	if p == nil {
		return // to no call, or to an abandoned one
	}
	if f := m.Failure; f != nil {
		p.finish(gjson.Result{}, &Error{Code: f.Code, Message: f.Message, Data: []byte(f.Data.Raw)})
		return
	}
	p.finish(m.Result, nil)
}

// refuse answers an invalid frame.
func (c *Conn) refuse(ctx context.Context, err *jsonrpc.Error) {
	c.run(ctx, func() {
		_ = c.write(context.Background(), jsonrpc.AppendError(nil, err.ID, err.Code, err.Detail, nil))
	})
}

// run runs f in a goroutine that counts as a request under way. It waits until there may be one more.
func (c *Conn) run(ctx context.Context, f func()) {
	under := c.requests
	if c.stranger.Load() {
		under = c.alone
	}
	select {
	case under <- struct{}{}:
	case <-ctx.Done():
		return
	}
	c.work.Go(func() {
		defer func() { <-under }()
		f()
	})
}

func (c *Conn) receiveRequest(ctx context.Context, m *jsonrpc.Request) {
	r := &Request{Conn: c, Method: m.Method, Params: m.Params, id: m.ID}
	c.run(ctx, func() {
		defer func() {
			if p := recover(); p != nil {
				bug.Log(ctx, c.log,
					"the gateway failed while it answered a request of AUN; this is a bug of the gateway", p,
					slog.String("method", r.Method))
			}
			if !r.answered {
				r.Fail(Errorf(codes.Internal, "Internal error"))
			}
		}()
		c.handler.Request(ctx, r)
	})
}

// Request is a request of the other end. It is used by one goroutine at a time.
type Request struct {
	Conn   *Conn
	Method string
	Params gjson.Result // an object, an array, or a Result that does not exist; the handler's

	id       jsonrpc.ID
	answered bool
}

// Reply answers the request with a result in JSON. It returns when the answer is sent, or the connection has ended. A
// result too large for a frame is answered with an error, and returned as ErrTooLarge.
func (r *Request) Reply(result []byte) error {
	frame := append(jsonrpc.BeginResult(make([]byte, 0, 64+len(result)), r.id), result...)
	err := r.send(jsonrpc.End(frame))
	if errors.Is(err, ErrTooLarge) {
		r.Fail(Errorf(codes.TaskTooLarge, "The answer is larger than %d bytes", MaxFrame))
	}
	return err
}

// Fail answers the request with an error. Any other than an *Error is internal, and its text is not sent.
func (r *Request) Fail(err error) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = Errorf(codes.Internal, "Internal error")
	}
	_ = r.send(jsonrpc.AppendError(nil, r.id, int(e.Code), e.Message, e.Data))
}

func (r *Request) send(frame []byte) error {
	r.answered = true
	return r.Conn.write(context.Background(), frame)
}

// Notify sends a notification. params is a JSON object. It returns when the frame is sent; a slow connection lets it
// wait until ctx ends.
func (c *Conn) Notify(ctx context.Context, method string, params []byte) error {
	frame := jsonrpc.BeginNotification(make([]byte, 0, 64+len(method)+len(params)), method)
	return c.write(ctx, jsonrpc.End(append(frame, params...)))
}

// write sends a frame. While another one is being sent it waits, until ctx ends.
func (c *Conn) write(ctx context.Context, frame []byte) error {
	if len(frame) > MaxFrame {
		return ErrTooLarge
	}
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return &LostError{Err: context.Cause(ctx)}
	case <-c.done:
		return &LostError{Err: c.Err()}
	}
	defer func() { <-c.writing }()
	if err := c.Err(); err != nil {
		return &LostError{Err: err}
	}
	// Not ctx: the connection is lost when a frame is given up halfway.
	timeout, cancel := context.WithTimeout(context.Background(), c.limits.WriteTimeout)
	defer cancel()
	if err := c.ws.Write(timeout, websocket.MessageText, frame); err != nil {
		if timeout.Err() != nil {
			err = fmt.Errorf("the other end has not read for %v", c.limits.WriteTimeout)
		}
		c.cut(&CloseError{Code: CloseAbnormal, Local: true, Err: err})
		return &LostError{Sent: true, Err: c.Err()}
	}
	if c.frames != nil {
		c.frames.Sent.Add(1)
	}
	return nil
}

// Close closes the connection with a status and a reason of at most 123 bytes. It waits a few seconds at most for the
// other end, and not for Serve.
func (c *Conn) Close(code CloseCode, reason string) {
	if c.end(&CloseError{Code: code, Reason: reason, Local: true}) {
		_ = c.ws.Close(code, reason)
	}
}

// cut ends a broken connection.
func (c *Conn) cut(why *CloseError) {
	if c.end(why) {
		_ = c.ws.CloseNow()
	}
}

// end records the reason of the connection's end, and ends its calls. It returns false if it had ended before.
func (c *Conn) end(why *CloseError) bool {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return false
	}
	c.ended = why
	waiting := c.waiting
	c.waiting = nil
	close(c.done)
	c.mu.Unlock()
	for _, p := range waiting {
		p.finish(gjson.Result{}, &LostError{Sent: true, Err: why})
	}
	return true
}
