// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/replay"
)

func TestStamp(t *testing.T) {
	times := []time.Time{ // in order
		{}, replay.AtRestart, time.Unix(0, 1), time.Unix(1, 0), time.Unix(1_800_000_000, 999_999_999), time.Unix(9_223_372_035, 999_999_999),
	}
	stamps := make([]stamp, len(times))
	for i, at := range times {
		stamps[i] = stampOf(at)
		if d := cmp.Diff(at, stamps[i].time()); d != "" {
			t.Errorf("through a stamp (-want +got):\n%s", d)
		}
	}
	if !slices.IsSorted(stamps) || len(slices.Compact(slices.Clone(stamps))) != len(stamps) {
		t.Errorf("stamps are not in the order of their times: %d", stamps)
	}
	for at, want := range map[time.Time]time.Time{
		time.Unix(-1, 999):   replay.AtRestart,
		time.Unix(1<<40, 0):  time.Unix(9_223_372_036, 854_775_806),
		time.Unix(1<<62, 99): time.Unix(9_223_372_036, 854_775_806),
	} {
		if d := cmp.Diff(want, stampOf(at).time()); d != "" {
			t.Errorf("%v (-want +got):\n%s", at, d)
		}
	}
}

// FuzzHead reads heads that may be damaged. One that can be read is written again as it was.
func FuzzHead(f *testing.F) {
	for _, h := range []head{
		{Head: replay.Head{First: 1}},
		{Head: replay.Head{First: 1, Last: 3, Bytes: 1200, Note: []byte("note"), Wake: replay.AtRestart}},
		{Head: replay.Head{First: 301, Last: 300, Note: []byte{0}, Wake: time.Unix(1_800_000_000, 5), Ended: time.Unix(1_900_000_000, 6)}, expires: 1 << 62},
		{Head: replay.Head{First: 1 << 40, Last: 1 << 50, Bytes: 1 << 40}},
	} {
		f.Add(h.append(nil))
	}
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b)
		if err != nil {
			return
		}
		written := h.append(nil)
		if len(written) > len(b) { // b may have numbers with needless zeros
			t.Fatalf("%x became longer: %x", b, written)
		}
		again, err := parseHead(written)
		if err != nil {
			t.Fatalf("%x, written again as %x: %v", b, written, err)
		}
		if d := cmp.Diff(h, again, cmp.AllowUnexported(head{}), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("(-first +again):\n%s", d)
		}
		if h.First > h.Last+1 || !bytes.HasSuffix(b, h.Note) {
			t.Fatalf("%x was read as %+v", b, h)
		}
	})
}
