// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/task"
)

// receive reads the body of the request into its buffer. After an error with a kind, which refuses the request, the
// buffer holds the begin of the body. last is true if the connection is of no further use then.
func (e *exchange) receive(w http.ResponseWriter, r *http.Request) (last bool, err error) {
	defer limitReading(w, e.front.config.BodyTimeout).end()
	err = e.read(r)
	if most, ok := errors.AsType[*http.MaxBytesError](err); ok { // of a handler before this one
		err = task.BodyTooLarge(task.InvalidRequest, most.Limit)
	}
	if _, refused := errors.AsType[*task.Error](err); refused {
		last = !e.skip(r)
	}
	return last, err
}

// read reads the body. Of a body too large, it reads no more than it needs to notice.
func (e *exchange) read(r *http.Request) error {
	most := e.front.gateway.MaxBody()
	if r.ContentLength <= int64(most) {
		err := readBody(r.Body, e.request.Body, r.ContentLength, most, e)
		if err != nil || len(*e.request.Body) <= most {
			return err
		}
	}
	return task.BodyTooLarge(task.InvalidRequest, int64(most))
}

// skipMost is the most bytes skipped beyond the greatest size of a body.
const skipMost = 64 << 20

// skip reads the rest of a refused body, and keeps nothing but its begin. Otherwise a caller sending all of a body
// before reading the answer sees a broken connection. It reports whether the body was read to its end.
func (e *exchange) skip(r *http.Request) bool {
	e.request.Drop()
	from, most := io.Reader(r.Body), int64(e.front.gateway.MaxBody()+skipMost)
	if b, ok := from.(*previewBody); ok {
		from = b.rest()
	}
	begin := *e.request.Body
	if n := len(begin); n < gateway.BeginOfBody {
		begin = slices.Grow(begin, gateway.BeginOfBody-n)[:gateway.BeginOfBody]
		more, err := io.ReadFull(from, begin[n:])
		if *e.request.Body = begin[:n+more]; err != nil {
			return err == io.EOF || err == io.ErrUnexpectedEOF
		}
	}
	if r.ContentLength > most {
		return false
	}
	_, err := io.CopyN(io.Discard, from, most)
	return err == io.EOF
}

// holder takes the memory for n bytes of a body.
type holder interface{ hold(n int) error }

// readBody reads a body of a length, or of the unknown length -1, into a buffer, but only one byte beyond a limit.
// Before the buffer grows, it takes the memory.
func readBody(from io.Reader, into *[]byte, length int64, limit int, memory holder) error {
	body := *into
	defer func() { *into = body }()
	if n := int(length); n > cap(body) && n <= limit {
		if err := memory.hold(n + 1); err != nil {
			return err
		}
		body = make([]byte, 0, n+1)
	}
	for {
		if len(body) > limit {
			return nil
		}
		if len(body) == cap(body) {
			more := max(cap(body), bufpool.First)
			if err := memory.hold(cap(body) + more); err != nil {
				return err
			}
			body = slices.Grow(body, more)
		}
		n, err := from.Read(body[len(body):min(cap(body), limit+1)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// hold takes the memory for n bytes of the body.
func (e *exchange) hold(n int) error { return e.front.gateway.Hold(e.ctx, e.peer, &e.request, n) }

// bodyTimeout ends a reading that takes too long. Only then does it set a deadline: a body is mostly there already, and
// over HTTP/2 each change of a deadline is a message to the goroutine of the connection.
type bodyTimeout struct {
	timer *time.Timer

	mu sync.Mutex
	w  http.ResponseWriter // nil once the body is read
}

// limitReading begins the caller's time for sending the body of a request.
func limitReading(w http.ResponseWriter, most time.Duration) *bodyTimeout {
	t := &bodyTimeout{w: w}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(most, t.expire)
	return t
}

// expire sets a deadline in the past. It stays: the server must not wait for the rest of the body either. A connection
// without deadlines (a test's recorder) has only the timeouts of the server.
func (t *bodyTimeout) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.w != nil {
		_ = http.NewResponseController(t.w).SetReadDeadline(time.Now().Add(-time.Second))
	}
}

// end marks the body as read, or as given up.
func (t *bodyTimeout) end() {
	t.timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.w = nil
}
