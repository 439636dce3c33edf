// SPDX-License-Identifier: Apache-2.0

package bufpool

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestGather(t *testing.T) {
	const largest = 4 * First
	pool := &Pool{Largest: largest}
	text := make([]byte, 5*largest)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	for _, n := range []int{0, 1, First, First + 1, largest, largest + 1, 3 * largest, len(text)} {
		for _, step := range []int{1, First - 1, len(text)} {
			g := Gather{Pool: pool}
			for left := text[:n]; len(left) > 0; {
				read := copy(g.Room(), left[:min(step, len(left))])
				if read == 0 {
					t.Fatalf("after %d bytes there is no room", g.Len())
				}
				g.Add(read)
				left = left[read:]
			}
			if g.Len() != n {
				t.Errorf("Len is %d, want %d", g.Len(), n)
			}
			for range 2 {
				if got := g.Bytes(); !bytes.Equal(got, text[:n]) || n > largest && cap(got) > n+First {
					t.Errorf("%d bytes by %d: other ones came out, or %d were allocated", n, step, cap(got))
				}
			}
			g.Release()
			g.Release()
			if g.Len() != 0 {
				t.Error("there are bytes after Release")
			}
		}
	}
}

// TestGatherLeavesNoGarbage gathers a text and drops it before its end, again and again.
func TestGatherLeavesNoGarbage(t *testing.T) {
	pool := &Pool{Largest: 256 << 10}
	const size = 16 << 20
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			g := Gather{Pool: pool}
			for g.Len() < size {
				g.Add(len(g.Room()))
			}
			g.Release()
		}
	})
	if got := result.AllocedBytesPerOp(); got > size/2 { // some, since a pool forgets
		t.Errorf("%d bytes were allocated for each text of %d that was dropped", got, size)
	}
}
