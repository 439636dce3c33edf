// SPDX-License-Identifier: Apache-2.0

package bufpool

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestPool(t *testing.T) {
	p := Pool{Largest: 2 * First}
	for _, size := range []int{0, 1, First, 2 * First, 2*First + 1} {
		b := p.Get()
		*b = make([]byte, size)
		p.Put(b)
		if b := p.Get(); len(*b) != 0 || cap(*b) == 0 || cap(*b) > p.Largest {
			t.Errorf("after one of %d bytes, a buffer has length %d and capacity %d", size, len(*b), cap(*b))
		}
	}
}

func TestGrow(t *testing.T) {
	for _, most := range []int{1, First - 1, First, First + 1, 1 << 20, 16<<20 + 1} {
		var b []byte
		allocated := 0
		for len(b) < most {
			grown := Grow(b, most)
			if string(grown) != string(b) || cap(grown) <= len(b) || cap(grown) > most {
				t.Fatalf("%d bytes of at most %d grow to %d, of %d", len(b), most, len(grown), cap(grown))
			}
			b = grown[:cap(grown)]
			allocated += cap(b)
		}
		if allocated > 3*most {
			t.Errorf("%d bytes were allocated for %d", allocated, most)
		}
	}
	if full := Grow(make([]byte, First), First); cap(full) != First+1 {
		t.Errorf("a full buffer grows to %d bytes, want one more than it had", cap(full))
	}
}

func TestReadAll(t *testing.T) {
	broken := errors.New("broken")
	text := strings.Repeat("x", 3*First)
	for _, tc := range []struct {
		name string
		src  io.Reader
		err  error
	}{
		{"at once", strings.NewReader(text), nil},
		{"by byte", iotest.OneByteReader(strings.NewReader(text)), nil},
		{"data with EOF", iotest.DataErrReader(strings.NewReader(text)), nil},
		{"an error after it", io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), broken},
	} {
		got, err := ReadAll([]byte("before "), tc.src)
		if string(got) != "before "+text || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d bytes, error %v", tc.name, len(got), err)
		}
	}
}
