// SPDX-License-Identifier: Apache-2.0

package protobytes

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
)

// TestGunzip: of a too large message, only one byte more than the limit is inflated.
func TestGunzip(t *testing.T) {
	const most = 1000
	newReader, _ := Gunzip(most)
	r := newReader() // is used again, as connect does
	for _, tc := range []struct{ size, want int }{
		{0, 0}, {1, 1}, {most, most}, {most + 1, most + 1}, {10 << 20, most + 1}, {most, most},
	} {
		var compressed bytes.Buffer
		w := gzip.NewWriter(&compressed)
		_, err := w.Write(make([]byte, tc.size))
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = r.Reset(&compressed)
		}
		n := int64(0)
		if err == nil {
			n, err = io.Copy(io.Discard, r)
		}
		if err == nil {
			err = r.Close()
		}
		if got, want := fmt.Sprint(n, err), fmt.Sprint(tc.want, nil); got != want {
			t.Errorf("of %d bytes: %s, want %s", tc.size, got, want)
		}
	}
}
