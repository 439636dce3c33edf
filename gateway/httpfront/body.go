// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
)

// read reads the body of the request into its buffer, but only one byte beyond the limit, which shows that the body is
// too large.
func (e *exchange) read(w http.ResponseWriter, r *http.Request) error {
	defer limitReading(w, e.front.config.BodyTimeout).end()
	return readBody(r.Body, e.request.Body, r.ContentLength, e.front.gateway.MaxBody(), e)
}

// holder takes the memory for n bytes of a body.
type holder interface{ hold(n int) error }

// readBody reads a body of a length, or of -1 for one that is not known, into a buffer, but only one byte beyond a
// limit. Before the buffer grows, it takes the memory.
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

// bodyTimeout ends the reading of a body that takes too long. Only then does it set a deadline: a body is mostly there
// already, and over HTTP/2 each change of a deadline is a message to the goroutine of the connection.
type bodyTimeout struct {
	timer *time.Timer

	mu sync.Mutex
	w  http.ResponseWriter // nil once the body is read
}

// limitReading begins the time that a caller may take to send the body of a request.
func limitReading(w http.ResponseWriter, most time.Duration) *bodyTimeout {
	t := &bodyTimeout{w: w}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(most, t.expire)
	return t
}

// expire sets a deadline that has passed. It stays: the server must not wait for the rest of the body either. A
// connection without deadlines (a test's recorder) has only the timeouts of the server.
func (t *bodyTimeout) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.w != nil {
		_ = http.NewResponseController(t.w).SetReadDeadline(time.Now().Add(-time.Second))
	}
}

// end says that the body is read, or will not be read to its end.
func (t *bodyTimeout) end() {
	t.timer.Stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.w = nil
}
