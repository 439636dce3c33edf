// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"io"
	"sync"
)

// largest is the capacity, in bytes, of the buffers that are kept for the next answer.
const largest = 256 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4<<10); return &b }}

func putBuffer(b *[]byte) {
	if cap(*b) <= largest {
		buffers.Put(b)
	}
}

// readAll appends all of src to dst.
func readAll(dst []byte, src io.Reader) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := src.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return dst, err
		}
	}
}
