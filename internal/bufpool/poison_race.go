// SPDX-License-Identifier: Apache-2.0

//go:build race

package bufpool

import "bytes"

// poison spoils a buffer given back, so that a test with the race detector fails if anything is still kept in it.
func poison(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, spoiled[:]):]
	}
}

var spoiled = [4 << 10]byte(bytes.Repeat([]byte{0xdb}, 4<<10))
