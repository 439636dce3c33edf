// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// largeIntent is one with metadata of so many bytes more.
func largeIntent(log string, more int) replay.Append {
	a := intent(log)
	a.Metadata = append(a.Metadata, bytes.Repeat([]byte("."), more)...)
	return a
}

// largeSize is the size of a disk whose memtables have the largest size, so that intents have slots of all sizes.
const largeSize = 4 << 30

// TestLargeIntents has a process die while large logs are intents: some have slots, and are in no journal, and others
// are too many, or too large for one.
func TestLargeIntents(t *testing.T) {
	mem := diskOf(t, largeSize)
	s, err := open(mem, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	add := func(log string, size int) (journaled bool) {
		t.Helper()
		a := largeIntent(log, size)
		_, before := s.journal.Position()
		appendAll(t, s, []replay.Append{a})
		want[log] = string(a.Metadata)
		_, after := s.journal.Position()
		return after > before
	}
	last := classes[len(classes)-1]
	for i, c := range classes {
		if room := c.size - slotHeader - len("fits0") - len("of fits0"); add(fmt.Sprint("fits", i), room) {
			t.Errorf("an intent that fits a slot of %d bytes is in the journal", c.size)
		}
	}
	if !add("large", last.size) {
		t.Error("an intent larger than any slot has one")
	}
	for i := 1; i < last.most; i++ {
		if add(fmt.Sprint("more", i), last.size-1000) {
			t.Errorf("an intent is in the journal, with %d slots left", last.most-i)
		}
	}
	if !add("one too many", last.size-1000) {
		t.Error("there are more slots than there should be")
	}
	appendAll(t, s, []replay.Append{{Log: "more1", Records: texts("one")}})
	if add("again", last.size-1000) {
		t.Error("a slot is not used again")
	}
	delete(want, "more1")
	dead := died(mem)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, disk := range map[string]*vfs.MemFS{"died": dead, "closed": mem} {
		// The disk is a small one now: its own file would have small slots alone.
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1 << 30, TotalBytes: 1 << 30})
		s, err := open(disk, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for _, log := range names(t, s) {
			if h, err := s.Head(t.Context(), log); err != nil {
				t.Error(err)
			} else if h.Last == 0 {
				got[log] = string(h.Metadata)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%.2000s", name, d)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestListOfManyIntents lists more intents than a page has, between as many other logs.
func TestListOfManyIntents(t *testing.T) {
	s, err := open(diskOf(t, largeSize), "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 3 * listPage {
		log := fmt.Sprintf("%04d", i)
		want = append(want, log)
		appendAll(t, s, []replay.Append{intent(log)})
		if i/100%2 == 1 {
			appendAll(t, s, []replay.Append{{Log: log, Records: texts("one")}})
		}
	}
	if d := cmp.Diff(want, names(t, s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
