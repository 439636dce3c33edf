// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
)

// read reads the body of the request into its buffer, but only one byte beyond the limit, which shows that the body is
// too large. Before the buffer grows, it takes the memory.
func (e *exchange) read(w http.ResponseWriter, r *http.Request) error {
	control := http.NewResponseController(w)
	// A connection without deadlines (a test's recorder) has only the timeouts of the server.
	if err := control.SetReadDeadline(time.Now().Add(e.front.config.BodyTimeout)); err == nil {
		defer control.SetReadDeadline(time.Time{})
	}
	limit := e.front.gateway.MaxBody()
	body := *e.request.Body
	defer func() { *e.request.Body = body }()
	if n := int(r.ContentLength); n > cap(body) && n <= limit {
		if err := e.hold(n + 1); err != nil {
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
			if err := e.hold(cap(body) + more); err != nil {
				return err
			}
			body = slices.Grow(body, more)
		}
		n, err := r.Body.Read(body[len(body):min(cap(body), limit+1)])
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
