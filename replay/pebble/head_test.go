// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/replay"
)

// append writes a head as setHead does.
func (h *head) append(b []byte, log string) []byte {
	return append(append(h.appendNumbers(b, log, len(h.entry)), h.entry...), h.Metadata...)
}

// TestHead holds the layout of a stored head: a change of it is another format.
func TestHead(t *testing.T) {
	h := head{
		Head: replay.Head{Revision: 300, First: 2, Last: 5, Bytes: 3, DueAt: replay.Recover, Metadata: []byte("meta"),
			Gaps: []replay.Gap{{From: 3, To: 4}}},
		losses: 1, inline: true, entry: []byte("\x01\x03abc"),
	}
	const want = "\x05" + "\x01\x01\x03\x04" + "\xac\x02" + "\x02\x05\x03\x01\x00\x00\x00" + "\x05\x01\x03abc" + "meta"
	if d := cmp.Diff(want, string(h.append(nil, "a"))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	h = head{Head: replay.Head{Revision: 1, First: 1, Lists: []replay.Listing{
		{List: "lpartner/other", At: time.Unix(0, 4), Label: "label"}, {List: "i"}}}}
	const lists = "\x02" + "\x02" + "l\x08\x05other\x05\x05label" + "i\x00\x00\x00\x00" +
		"\x01" + "\x01\x00\x00\x00\x00\x00\x00"
	if d := cmp.Diff(lists, string(h.append(nil, "tpartner/log"))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	h = head{Head: replay.Head{Revision: 1, First: 1, Last: 200, Bytes: 300, Cut: true}, entries: 130, followed: true}
	if d := cmp.Diff("\x18\x01\x01\xc8\x01\xac\x02\x00\x00\x00\x82\x01", string(h.append(nil, "a"))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzHead reads possibly damaged heads. A readable one is written again, and read as it was.
func FuzzHead(f *testing.F) {
	for _, h := range []head{
		{Head: replay.Head{First: 1}},
		{Head: replay.Head{First: 1, Last: 3, Bytes: 1200, Metadata: []byte("note"), DueAt: replay.Recover}, entries: 1},
		{Head: replay.Head{First: 301, Last: 300, Metadata: []byte{0}, DueAt: time.Unix(1_800_000_000, 5),
			Ended: time.Unix(1_900_000_000, 6)}, expires: 1 << 62},
		{Head: replay.Head{First: 1 << 40, Last: 1 << 50, Bytes: 1 << 40}, entries: 1 << 45},
		{Head: replay.Head{First: 5, Last: 300, Gaps: []replay.Gap{{From: 4, To: 9}, {From: 11, To: 299}},
			Metadata: []byte("note")}, losses: 2, entries: 2},
		{Head: replay.Head{Revision: 1 << 60, First: 1}},
		{Head: replay.Head{First: 1, Last: 3, Bytes: 1200, Metadata: []byte("note")}, entries: 1, followed: true},
		{Head: replay.Head{First: 1, Last: 1, Bytes: 1}, inline: true, entry: []byte{1, 1, 'x'}},
		{Head: replay.Head{First: 1, Lists: []replay.Listing{{List: "list", At: time.Unix(9, 9), Label: "x"}, {List: "l"}}}},
	} {
		h.Revision = max(h.Revision, 1)
		f.Add(h.append(nil, "a"))
	}
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b, "a", 2)
		if err != nil {
			return
		}
		written := h.append(nil, "a")
		if len(written) > len(b) { // b may have numbers with needless zeros
			t.Fatalf("%x became longer: %x", b, written)
		}
		again, err := parseHead(written, "a", 2)
		if err != nil {
			t.Fatalf("%x, written again as %x: %v", b, written, err)
		}
		if d := cmp.Diff(h, again, cmp.AllowUnexported(head{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("(-first +again):\n%s", d)
		}
		if h.First > h.Last+1 || h.Revision == 0 || !bytes.HasSuffix(b, h.Metadata) {
			t.Fatalf("%x was read as %+v", b, h)
		}
	})
}

// FuzzEntry makes an entry of two halves of records, and reads it from each number on. Then it reads a possibly damaged
// entry. This costs no more memory than the entry has bytes.
func FuzzEntry(f *testing.F) {
	f.Add([]byte("one\x00two\x00\x00three"), uint8(2), uint64(9))
	f.Add([]byte{2, 1, 'a', 1, 'b'}, uint8(0), uint64(2))
	f.Add([]byte{2, 1, 'a', 1}, uint8(1), uint64(1))
	f.Add(binary.AppendUvarint(nil, 1<<62), uint8(0), uint64(1<<63))
	f.Add(append([]byte{1}, binary.AppendUvarint(nil, 1<<63)...), uint8(0), uint64(1))
	f.Fuzz(func(t *testing.T, b []byte, half uint8, last uint64) {
		all := bytes.Split(b, []byte{0})
		n := uint64(len(all))
		split := min(int(half), len(all))
		if last >= n {
			first := appendEntry(nil, nil, all[:split])
			entry := appendEntry(nil, first, all[split:])
			if len(entry) != entryLen(first, all[split:]) || len(first) != entryLen(nil, all[:split]) {
				t.Fatalf("%x, of %x, has not the length %d", entry, first, entryLen(first, all[split:]))
			}
			for from := last - n + 1; from <= last && from > 0; from++ {
				r := readEntry(entry, last, from, last)
				for want := from; want <= last && want > 0; want++ {
					if data := all[want-(last-n+1)]; !r.next() || r.seq != want || !bytes.Equal(r.data, data) {
						t.Fatalf("from %d: %d %q, want %d %q", from, r.seq, r.data, want, data)
					}
				}
				if r.next() || r.close() != nil {
					t.Fatalf("from %d: more than %d records, %v", from, n, r.close())
				}
			}
		}
		r := readEntry(b, last, 0, last)
		size := 0
		for r.next() {
			size += len(r.data)
		}
		if r.seq > last || size > len(b) {
			t.Fatalf("%x: %d bytes up to %d", b, size, r.seq)
		}
	})
}
