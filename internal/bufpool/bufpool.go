// SPDX-License-Identifier: Apache-2.0

// Package bufpool keeps byte buffers for their next use.
package bufpool

import (
	"io"
	"math"
	"sync"
)

// Pool is a set of byte buffers. Its methods may be called by any number of goroutines at once.
type Pool struct {
	// Largest is the largest capacity of a kept buffer, in bytes, so that one large message does not take its memory for
	// ever.
	Largest int

	pool sync.Pool
}

// First is the capacity of a new buffer, in bytes.
const First = 4 << 10

// Get returns an empty buffer. It is the caller's until Put.
func (p *Pool) Get() *[]byte {
	b, ok := p.pool.Get().(*[]byte)
	if !ok {
		b = new([]byte)
		*b = make([]byte, 0, First)
	}
	*b = (*b)[:0]
	return b
}

// Put gives a buffer back. Neither it nor a slice of it may be used afterwards: the race detector's builds spoil it.
func (p *Pool) Put(b *[]byte) {
	poison((*b)[:cap(*b)])
	if n := cap(*b); n > 0 && n <= p.Largest {
		p.pool.Put(b)
	}
}

// Grow returns b with room for more: with twice its capacity, but with at most so many bytes if these are one more at
// least. Content read into a buffer growing by append is allocated five times over, and twice with Grow.
func Grow(b []byte, most int) []byte {
	grown := make([]byte, len(b), max(len(b)+1, min(2*cap(b), most), min(First, most)))
	copy(grown, b)
	return grown
}

// ReadAll appends all of src to dst, as io.ReadAll does to a new slice.
func ReadAll(dst []byte, src io.Reader) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = Grow(dst, math.MaxInt)
		}
		n, err := src.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
	}
}
