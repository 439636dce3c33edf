// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// buffer holds one request and its answer. Buffers are used again: what is decoded keeps no part of them.
type buffer struct{ in, out []byte }

var buffers = sync.Pool{New: func() any { return &buffer{in: make([]byte, 0, firstRoom), out: make([]byte, 0, firstRoom)} }}

// firstRoom is how many bytes a buffer has room for at first.
const firstRoom = 4 << 10

// keepable is the size up to which a buffer is used again, so that one large request does not cost its memory
// for ever.
const keepable = 256 << 10

func (b *buffer) free() {
	if cap(b.in)+cap(b.out) <= keepable {
		b.in, b.out = b.in[:0], b.out[:0]
		buffers.Put(b)
	}
}

// read takes in a request's body, but no more than one byte over a limit, which is enough to know that it is
// exceeded. hold is called before the buffer grows, with the size that it will have; an error of it is returned.
func (b *buffer) read(w http.ResponseWriter, r *http.Request, limit int, timeout time.Duration,
	hold func(int) error,
) error {
	control := http.NewResponseController(w)
	// Where the connection has no deadlines (a test's recorder), the server's own timeouts are all there is.
	if err := control.SetReadDeadline(time.Now().Add(timeout)); err == nil {
		defer control.SetReadDeadline(time.Time{})
	}
	b.in = b.in[:0]
	if n := int(r.ContentLength); n > cap(b.in) && n <= limit {
		if err := hold(n + 1); err != nil {
			return err
		}
		b.in = make([]byte, 0, n+1)
	}
	for {
		if len(b.in) > limit {
			return nil
		}
		if len(b.in) == cap(b.in) {
			more := max(cap(b.in), firstRoom) // a buffer that a large request has left has no room at all
			if err := hold(cap(b.in) + more); err != nil {
				return err
			}
			b.in = slices.Grow(b.in, more)
		}
		n, err := r.Body.Read(b.in[len(b.in):min(cap(b.in), limit+1)])
		b.in = b.in[:len(b.in)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
