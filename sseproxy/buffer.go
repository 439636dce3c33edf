// SPDX-License-Identifier: Apache-2.0

package sseproxy

import (
	"io"
	"sync"
)

// The sizes of a Reader's buffer in bytes. There are many idle streams. So a large buffer is only used after a read has
// filled a small one, and only as long as reads fill half of it. A larger one than these is for one large event.
const (
	smallBuffer = 4 << 10
	largeBuffer = 32 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// fill reads once.
func (r *Reader) fill() {
	r.ensureSpace()
	// A source giving neither bytes nor an error is given up, as bufio does.
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.last = n
		if err != nil {
			r.err = err
		}
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// ensureSpace gives the buffer space for a read.
func (r *Reader) ensureSpace() {
	n, size, full := r.end-r.start, len(r.buf), r.end == len(r.buf)
	want := smallBuffer
	if size == smallBuffer && full || size == largeBuffer && r.last >= largeBuffer/2 {
		want = largeBuffer
	}
	switch {
	case n <= want/4 && size != want:
		r.use(want)
	case n <= size/4 || full && r.start > size/2:
		copy(r.buf, r.buf[r.start:r.end])
		r.start, r.end = 0, n
	case full:
		r.use(max(largeBuffer, 2*size))
	}
}

// use makes the buffer one of a size, with the unused bytes.
func (r *Reader) use(size int) {
	var buf []byte
	switch size {
	case smallBuffer:
		buf = smallBuffers.Get().(*[smallBuffer]byte)[:]
	case largeBuffer:
		buf = largeBuffers.Get().(*[largeBuffer]byte)[:]
	default:
		buf = make([]byte, size)
	}
	n := copy(buf, r.buf[r.start:r.end])
	r.release()
	r.buf, r.start, r.end = buf, 0, n
}

// release gives the buffer back.
func (r *Reader) release() {
	switch len(r.buf) {
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(r.buf))
	case largeBuffer:
		largeBuffers.Put((*[largeBuffer]byte)(r.buf))
	}
}
