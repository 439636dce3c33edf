// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"slices"
	"testing"
)

// FuzzScan reads any bytes as a segment. The bytes taken for records are the same as made by Append; the rest is not
// whole.
func FuzzScan(f *testing.F) {
	record := func(b []byte, number uint64, kind byte, payload string) []byte {
		return Append(b, number, kind, []byte(payload), Sum([]byte(payload)))
	}
	start := Header{First: 3, End: 1000}
	whole := record(nil, 7, KindStart, string(start.Append(nil)))
	whole = record(whole, 7, KindBatch, "a batch")
	whole = record(whole, 7, KindBatch, "")
	f.Add([]byte(nil), uint64(7))
	f.Add(whole, uint64(7))
	f.Add(whole, uint64(8))
	f.Add(whole[:len(whole)-HeaderLen-1], uint64(7))
	f.Add(append(slices.Clone(whole), make([]byte, 100)...), uint64(7))
	f.Add(record(slices.Clone(whole), 6, KindBatch, "of a former life"), uint64(7))
	f.Add(append(slices.Clone(whole), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 2), uint64(7))
	f.Fuzz(func(t *testing.T, data []byte, number uint64) {
		var again []byte
		end, err := Scan(bytes.NewReader(data), int64(len(data)), number, func(kind byte, payload []byte) error {
			again = record(again, number, kind, string(payload))
			var h Header
			if err := h.Parse(kind, payload); err == nil && kind != KindStart {
				t.Errorf("a record of kind %d is the first one of a segment", kind)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, data[:end]) {
			t.Fatalf("%d bytes are taken for other records", end)
		}
		// Another segment written over this one ends at its own end.
		other := record(nil, number+1, KindBatch, "x")
		over := append(slices.Clone(other), data[min(len(data), len(other)):]...)
		end, err = Scan(bytes.NewReader(over), int64(len(over)), number+1, func(byte, []byte) error { return nil })
		if err != nil || end < int64(len(other)) {
			t.Fatalf("%d of %d bytes, %v", end, len(other), err)
		}
	})
}
