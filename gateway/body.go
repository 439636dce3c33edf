// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/quota"
)

// buffer holds one request and its answer. Buffers are used again: what is decoded keeps no part of them.
type buffer struct{ in, out *[]byte }

// A request that holds more than quota.Free is counted, so no larger buffer is used again for one that is not.
var (
	requests = bufpool.Pool{Largest: quota.Free}
	answers  = bufpool.Pool{Largest: 256 << 10}
)

func newBuffer() buffer { return buffer{requests.Get(), answers.Get()} }

func (b *buffer) free() {
	requests.Put(b.in)
	answers.Put(b.out)
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
	in := (*b.in)[:0]
	defer func() { *b.in = in }()
	if n := int(r.ContentLength); n > cap(in) && n <= limit {
		if err := hold(n + 1); err != nil {
			return err
		}
		in = make([]byte, 0, n+1)
	}
	for {
		if len(in) > limit {
			return nil
		}
		if len(in) == cap(in) {
			more := max(cap(in), bufpool.First)
			if err := hold(cap(in) + more); err != nil {
				return err
			}
			in = slices.Grow(in, more)
		}
		n, err := r.Body.Read(in[len(in):min(cap(in), limit+1)])
		in = in[:len(in)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
