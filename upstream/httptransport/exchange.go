// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/internal/gunzip"
	"github.com/aip-gateway/aip-gateway/internal/http1"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// The most of a stream's end, in time and bytes, to await after its last event, to use the connection again. Some
// agents never end it. So long, the end of a body's sending is awaited after the answer, too.
const (
	linger      = 20 * time.Millisecond
	lingerBytes = 1 << 10
)

// replies holds the answers without a stream while they are read, in parts if they are larger.
var replies = bufpool.Pool{Largest: 256 << 10}

// exchange is one request and its answer. The answer arrives while it is read. It implements upstream.Exchange.
type exchange struct {
	transport   *Transport
	ctx         context.Context
	interrupt   *upstream.Interrupt // watched instead of ctx; nil for none, and once it has ended a call
	unwatch     func() bool         // stops watching ctx, the end of which aborts conn; nil if ctx is not watched
	idleTimeout time.Duration
	span        tracing.ClientSpan

	request request
	dialing *dialing      // nil if no other goroutine opens a connection
	sending chan struct{} // closed when another goroutine has written the body; nil if none does
	conn    *http1.Conn   // nil until there is a connection
	begun   bool          // the head of the answer has been read

	status                  int // of the answer, as the fields below
	contentType, retryAfter string
	events                  *sseproxy.Reader // of a stream
	body                    bufpool.Gather   // of an answer without a stream
	whole                   bool             // the only message was returned
}

// Begin implements upstream.Exchange.
func (x *exchange) Begin() error {
	if x.begun {
		return nil
	}
	if x.conn == nil {
		conn, err := x.connect()
		if err == nil {
			err = x.send(conn)
		}
		if err != nil {
			return x.failed(err, "before it answered")
		}
	}
	x.watch()
	if err := x.conn.ReadHead(); err != nil {
		return x.failed(err, "before it answered")
	}
	x.begun = true
	x.status, x.contentType, x.retryAfter = x.conn.Status, x.conn.ContentType, x.conn.RetryAfter
	x.span.Status(x.status)
	if x.mediaType() == "text/event-stream" {
		max := x.transport.config.MaxEvent
		var content io.Reader = x.conn
		if x.conn.Gzip {
			content = gunzip.NewReader(content)
		}
		x.events = sseproxy.NewReader(content, sseproxy.Limits{Line: max + len("data: "), Event: max})
		x.conn.SetIdleTimeout(x.idleTimeout)
		x.dropInterrupt()
	} else {
		x.conn.Renew()
	}
	return nil
}

// watch makes the end of the interrupt stop a wait for the agent, or, without one, the end of the context abort it.
func (x *exchange) watch() {
	switch {
	case x.interrupt != nil:
		x.conn.StopAt(x.interrupt.Until)
		x.interrupt.Wake(x.conn.StopFunc)
	case x.unwatch == nil && x.ctx.Done() != nil:
		x.unwatch = context.AfterFunc(x.ctx, x.conn.AbortFunc)
	}
}

// dropInterrupt stops watching the interrupt, and watches the context instead.
func (x *exchange) dropInterrupt() {
	if x.interrupt == nil {
		return
	}
	x.interrupt.Wake(nil)
	x.interrupt = nil
	if x.conn != nil {
		x.conn.Resume()
		x.watch()
	}
}

// failed returns the error of a call ended by an error of the connection. The interrupt ends only one call.
func (x *exchange) failed(err error, when string) error {
	if errors.Is(err, http1.ErrStopped) && x.interrupt != nil {
		x.dropInterrupt()
		if x.ctx.Err() == nil {
			return upstream.ErrInterrupted
		}
	}
	return x.broken(err, when)
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
	data, err := x.readAll()
	x.whole = err == nil
	return upstream.Message{Data: data}, err
}

func (x *exchange) nextEvent() (upstream.Message, error) {
	ev, err := x.events.Next()
	switch {
	case err == nil:
		return upstream.Message{Name: ev.Name, Data: ev.Data}, nil
	case errors.Is(err, sseproxy.ErrTooLarge):
		return upstream.Message{}, task.Errorf(task.InvalidAgentResponse,
			"an event of the agent is larger than %d bytes", x.transport.config.MaxEvent)
	case x.ctx.Err() != nil || errors.Is(err, http1.ErrSilent):
		return upstream.Message{}, x.broken(err, "")
	}
	return upstream.Message{},
		upstream.Failed(task.InvalidAgentResponse, upstream.StreamCut, err, "the agent's stream was cut")
}

// readAll reads the whole answer. It is valid until the exchange is closed.
func (x *exchange) readAll() ([]byte, error) {
	max := x.transport.config.MaxReply
	if x.conn.Length() > int64(max) {
		return nil, tooLarge(max)
	}
	x.body.Pool = &replies
	for {
		n, err := x.conn.Read(x.body.Room())
		x.body.Add(n)
		switch {
		case x.body.Len() > max:
			return nil, tooLarge(max)
		case err == io.EOF:
			return x.uncompressed(x.body.Bytes())
		case err != nil:
			return nil, x.failed(err, "in the middle of its answer")
		}
	}
}

// uncompressed returns the content of an answer. Some servers compress it, although they are not asked to.
func (x *exchange) uncompressed(content []byte) ([]byte, error) {
	if !x.conn.Gzip {
		return content, nil
	}
	max := x.transport.config.MaxReply
	plain, err := io.ReadAll(io.LimitReader(gunzip.NewReader(bytes.NewReader(content)), int64(max)+1))
	switch {
	case len(plain) > max:
		return nil, tooLarge(max)
	case err != nil:
		return nil, task.Errorf(task.InvalidAgentResponse,
			"the agent's answer says that it is compressed by gzip, and is not")
	}
	return plain, nil
}

func tooLarge(max int) error {
	return task.Errorf(task.InvalidAgentResponse, "the agent's answer is larger than %d bytes", max)
}

// Ready implements upstream.Exchange.
func (x *exchange) Ready() bool { return x.events != nil && x.events.Ready() }

// SetIdleTimeout implements upstream.Exchange.
func (x *exchange) SetIdleTimeout(d time.Duration) {
	x.idleTimeout = d
	x.conn.SetIdleTimeout(d)
}

// EndAt ends a stream at a time, unless an event comes before; zero is for never. A stream ended by an earlier time
// goes on.
func (x *exchange) EndAt(t time.Time) {
	x.conn.StopAt(t)
	if x.events != nil {
		x.events.Resume(http1.ErrStopped)
	}
}

// Close implements upstream.Exchange. The connection is used again if the answer was read to its end, and was the
// answer to the request. After a server has failed it is not: some servers, such as uvicorn, close the connection then
// without saying so.
func (x *exchange) Close(err error) {
	x.abandonDial()
	if x.conn != nil {
		sound := x.status < http.StatusInternalServerError && !errors.Is(err, translate.ErrOtherAnswer)
		x.giveBack(err == nil && x.events != nil, sound)
	}
	if x.events != nil {
		x.events.Close()
	}
	x.request.release()
	x.body.Release()
	if errors.Is(err, upstream.ErrAbandoned) {
		err = nil
	}
	x.span.End(err)
}

// giveBack gives the connection back to the pool, or closes it if it is not sound. If end, it waits a moment for the
// end of a stream.
func (x *exchange) giveBack(end, sound bool) {
	conn := x.conn
	x.conn = nil
	if end && !conn.ReachEnd() {
		conn.StopAt(time.Now().Add(linger))
		io.Copy(io.Discard, io.LimitReader(conn, lingerBytes))
	}
	if x.interrupt != nil {
		x.interrupt.Wake(nil)
	}
	if x.unwatch != nil && !x.unwatch() {
		sound = false
	}
	if x.sending != nil && !x.isSent(sound) { // the agent has answered before it has read the request
		sound = false
		conn.Abort()
		<-x.sending
	}
	if sound {
		x.transport.pool.Put(conn)
	} else {
		conn.Close()
	}
}

// isSent reports whether another goroutine has written the body. To a goroutine that is about to end, it gives a moment
// if the connection can be used again.
func (x *exchange) isSent(sound bool) bool {
	select {
	case <-x.sending:
		return true
	default:
	}
	if !sound {
		return false
	}
	moment := time.NewTimer(linger)
	defer moment.Stop()
	select {
	case <-x.sending:
		return true
	case <-moment.C:
		return false
	}
}

// mediaType returns the answer's media type, for comparison and for people.
func (x *exchange) mediaType() string {
	switch x.contentType { // the usual ones need not be parsed
	case "application/json", "application/json; charset=utf-8":
		return "application/json"
	case "text/event-stream", "text/event-stream; charset=utf-8":
		return "text/event-stream"
	}
	t, _, err := mime.ParseMediaType(x.contentType)
	if err != nil || len(t) > 64 {
		return "no media type"
	}
	return t
}
