// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// TestRepairFollowed damages one append to a log with pieces, in the journal. If others came after it, or the tables
// have a part of it, the log ends. It is never kept with the records of an append, and the metadata of one before.
func TestRepairFollowed(t *testing.T) {
	piece := replay.Append{Records: texts("more"), Metadata: []byte("running"), DueAt: replay.Recover}
	large, changed, done := piece, piece, piece
	large.Records = [][]byte{bytes.Repeat([]byte("x"), maxInline)} // in an entry of its own from the beginning
	changed.Metadata, changed.Durable = []byte("asking"), true
	done.Metadata, done.DueAt, done.Durable, done.End = []byte("done"), time.Time{}, true, true
	for name, tc := range map[string]struct {
		appends []replay.Append
		damaged int  // of them
		flushed bool // the tables have all of them
		ended   bool
		last    uint64 // if it has not ended
	}{
		"the beginning":             {[]replay.Append{piece, piece, piece}, 0, false, false, 3}, // the next one has it too
		"a large beginning":         {[]replay.Append{large, piece, piece}, 0, false, true, 0},
		"the first piece":           {[]replay.Append{piece, piece, piece}, 1, false, true, 0},
		"a piece":                   {[]replay.Append{piece, piece, piece, piece}, 2, false, true, 0},
		"the last piece":            {[]replay.Append{piece, piece, piece}, 2, false, false, 2},
		"a change":                  {[]replay.Append{piece, piece, changed, piece, piece}, 2, false, true, 0},
		"the last change":           {[]replay.Append{piece, piece, piece, changed}, 3, false, false, 3},
		"the last change, in table": {[]replay.Append{piece, piece, piece, changed}, 3, true, true, 0},
		"the end":                   {[]replay.Append{piece, piece, piece, done}, 3, false, false, 3},
		"the end, in table":         {[]replay.Append{piece, piece, piece, done}, 3, true, true, 0},
		"the last piece, in table":  {[]replay.Append{piece, piece, piece}, 2, true, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			disk := crashableDisk()
			setBoot(t, disk, "one")
			s, err := open(disk, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			place := 0
			for i, a := range tc.appends {
				if i == tc.damaged {
					place = used(t, disk, segmentPath(1)) + segment.HeaderLen
				}
				a.Log, a.Expect = "t", uint64(i)
				if err := s.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			appendRecords(t, s, "u", true, "behind it")
			if tc.flushed {
				if err := s.committed().Flush(); err != nil {
					t.Fatal(err)
				}
			}
			killed := clone(disk)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			flip(t, killed, segmentPath(1), place)
			done, err := repair(killed, "/store", quiet)
			if err != nil {
				t.Fatal(err)
			}
			var ended []string
			if tc.ended {
				ended = []string{"t"}
			}
			if d := cmp.Diff(ended, done.Logs); d != "" {
				t.Errorf("logs that have ended (-want +got):\n%s", d)
			}
			if s, err = open(killed, "/store", replay.Settings{}, quiet); err != nil {
				t.Fatal(err)
			}
			h, err := s.Head(t.Context(), "t")
			if err != nil || h.Ended.IsZero() == tc.ended {
				t.Errorf("%+v, %v, want one that has ended: %v", h, err, tc.ended)
			}
			_, _, records, err := s.Load(t.Context(), "t")
			switch {
			case tc.ended:
				if !errors.Is(err, errDamaged) {
					t.Errorf("Load: %v, want errDamaged", err)
				}
			case err != nil || !h.Cut || h.Revision != tc.last || h.Last != tc.last || uint64(len(records)) != tc.last ||
				string(h.Metadata) != "running":
				t.Errorf("%+v with %d records, %v, want %d", h, len(records), err, tc.last)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
