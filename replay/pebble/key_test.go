// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	gocmp "cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

func TestStamp(t *testing.T) {
	times := []time.Time{ // in order
		{}, replay.Recover, time.Unix(0, 1), time.Unix(1, 0), time.Unix(1_800_000_000, 999_999_999),
		time.Unix(9_223_372_035, 999_999_999),
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
		time.Unix(-1, 999):   replay.Recover,
		time.Unix(1<<40, 0):  time.Unix(9_223_372_036, 854_775_806),
		time.Unix(1<<62, 99): time.Unix(9_223_372_036, 854_775_806),
	} {
		if d := cmp.Diff(want, stampOf(at).time()); d != "" {
			t.Errorf("%v (-want +got):\n%s", at, d)
		}
	}
}

// TestKeys holds the layout on the disk: a change of it is another format.
func TestKeys(t *testing.T) {
	const at = stamp(0x0102030405060708)
	for name, test := range map[string]struct {
		key    []byte
		length int
		want   string
	}{
		"format":   {formatKey, 1, "f"},
		"head":     {appendNameKey(nil, spaceHead, "tlog"), nameKeyLen("tlog"), "htlog"},
		"snapshot": {appendNameKey(nil, spaceSnapshot, "tlog"), nameKeyLen("tlog"), "stlog"},
		"entry": {appendEntryKey(nil, "tlog", 258), entryKeyLen("tlog"),
			"r\x00\x04tlog\x00\x00\x00\x00\x00\x00\x01\x02"},
		"list": {appendListKey(nil, "list", at, "tlog"), listKeyLen("list", "tlog"),
			"l\x00\x04list\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7tlog"},
		"due":              {appendDueKey(nil, at, "tlog"), timeKeyLen("tlog"), "wt\x01\x02\x03\x04\x05\x06\x07\x08log"},
		"due, class alone": {appendDueKey(nil, at, "t"), timeKeyLen("t"), "wt\x01\x02\x03\x04\x05\x06\x07\x08"},
		"expiry":           {appendExpiryKey(nil, at, "tlog"), timeKeyLen("tlog"), "x\x01\x02\x03\x04\x05\x06\x07\x08tlog"},
	} {
		if d := cmp.Diff(test.want, string(test.key)); d != "" || len(test.key) != test.length {
			t.Errorf("%s: length %d (-want +got):\n%s", name, test.length, d)
		}
	}
}

// FuzzTimeKeys takes the keys of both indexes apart again, and wants their order to be by class and time, and then by
// name.
func FuzzTimeKeys(f *testing.F) {
	f.Add("tlog", uint64(1), "tlof", uint64(2))
	f.Add("t", uint64(1), "t\x00", uint64(1))
	f.Add("\xff", uint64(1<<63), "\xff\xff", uint64(1<<63-1))
	f.Add("s\xff", uint64(1<<62), "t", uint64(0))
	f.Fuzz(func(t *testing.T, a string, atA uint64, b string, atB uint64) {
		if a == "" || b == "" {
			return
		}
		for name, index := range map[string]struct {
			key   timeKey
			split func([]byte) (stamp, string)
			want  int
		}{
			"wake": {appendDueKey, splitDueKey, gocmp.Or(gocmp.Compare(a[0], b[0]), gocmp.Compare(atA, atB),
				gocmp.Compare(a, b))},
			"expiry": {appendExpiryKey, splitExpiryKey, gocmp.Or(gocmp.Compare(atA, atB), gocmp.Compare(a, b))},
		} {
			keyA, keyB := index.key(nil, stamp(atA), a), index.key(nil, stamp(atB), b)
			if at, log := index.split(keyA); at != stamp(atA) || log != a || len(keyA) != timeKeyLen(a) {
				t.Errorf("%s: %x became %d %q", name, keyA, at, log)
			}
			if got := bytes.Compare(keyA, keyB); got != index.want {
				t.Errorf("%s: %x to %x: %d, want %d", name, keyA, keyB, got, index.want)
			}
		}
	})
}

// FuzzListKeys takes the keys of logs in lists apart again, and wants those of a list within its bounds, and no others,
// in the order of ListedLog.Compare.
func FuzzListKeys(f *testing.F) {
	f.Add("list", "a", uint64(1), "list", "b", uint64(2))
	f.Add("list", "a", uint64(1), "list", "a", uint64(1))
	f.Add("l", "a", uint64(0), "l\x00", "\x00", uint64(1<<63-1))
	f.Add("\xff", "\xff", uint64(1<<62), "\xff\xff", "", uint64(7))
	f.Fuzz(func(t *testing.T, listA, a string, atA uint64, listB, b string, atB uint64) {
		atA, atB = atA&(1<<63-1), atB&(1<<63-1) // all possible times
		if a == "" || b == "" || listA == "" || listB == "" || max(len(listA), len(listB)) > replay.MaxName {
			return
		}
		keyA, keyB := appendListKey(nil, listA, stamp(atA), a), appendListKey(nil, listB, stamp(atB), b)
		if at, log := splitListKey(keyA, len(listA)); at != stamp(atA) || log != a || len(keyA) != listKeyLen(listA, a) {
			t.Errorf("%x became %d %q", keyA, at, log)
		}
		placeA := replay.ListedLog{Log: a, At: stamp(atA).time()}
		placeB := replay.ListedLog{Log: b, At: stamp(atB).time()}
		if got, want := bytes.Compare(keyA, keyB), placeA.Compare(placeB); listA == listB && got != want {
			t.Errorf("%x to %x: %d, want %d", keyA, keyB, got, want)
		}
		for after, want := range map[replay.ListedLog]bool{
			{}:     listA == listB,
			placeA: listA == listB && placeA.Compare(placeB) < 0,
		} {
			lower, upper := listBounds(listA, after)
			if got := bytes.Compare(lower, keyB) <= 0 && bytes.Compare(keyB, upper) < 0; got != want {
				t.Errorf("%x in [%x, %x): %t, want %t", keyB, lower, upper, got, want)
			}
		}
	})
}

// FuzzHeadBounds wants the bounds of a scan to contain a log's head if and only if List must yield the log.
func FuzzHeadBounds(f *testing.F) {
	f.Add("t", "", "tlog")
	f.Add("", "tlog", "tlog")
	f.Add("t\xff", "t\xff", "t\xff\x00")
	f.Add("\xff\xff", "\xff", "\xff\xff")
	f.Add("t", "u", "t1")
	f.Add("t", "s", "t")
	f.Fuzz(func(t *testing.T, prefix, after, log string) {
		if log == "" {
			return
		}
		lower, upper := headBounds(prefix, after)
		if bytes.Compare(lower, upper) > 0 {
			t.Fatalf("[%x, %x)", lower, upper)
		}
		key := appendNameKey(nil, spaceHead, log)
		got := bytes.Compare(lower, key) <= 0 && bytes.Compare(key, upper) < 0
		if want := strings.HasPrefix(log, prefix) && log > after; got != want {
			t.Errorf("%x in [%x, %x): %t, want %t", key, lower, upper, got, want)
		}
	})
}
