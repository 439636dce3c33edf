// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/replay"
)

// byMetadata is what tests give to Relist: a list, with the metadata as the label.
func byMetadata(log string, metadata []byte) []replay.Listing {
	if len(metadata) == 0 || len(metadata) > replay.MaxLabel {
		return nil
	}
	return []replay.Listing{{List: "by metadata", At: time.Unix(int64(len(log)), 0), Label: string(metadata)}}
}

func listed(t *testing.T, s replay.Store, list string) (all []replay.ListedLog) {
	t.Helper()
	for l, err := range s.Listed(t.Context(), list, replay.ListedLog{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// TestRelist gives lists to the logs of stores of the formats before, whether they run, have ended, have their records
// beside the head or none, and holds that nothing else of them changes, and that it happens once.
func TestRelist(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, dir string){
		"format 3": func(t *testing.T, dir string) { makeStore(t, dir, "testdata/format3.txt") },
		"format 4": func(t *testing.T, dir string) {
			s := openAt(t, dir, longRetention)
			for i := range 2*relistPage + 1 {
				appendAll(t, s, []replay.Append{{Log: fmt.Sprintf("t%05d", i), Records: many(1, i%3), Metadata: fmt.Append(nil, i),
					End: i%5 == 0}})
			}
			b := s.db.NewBatch()
			defer b.Close()
			if err := b.Set(formatKey, []byte("aip-gateway replay 4"), nil); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.commit(b, 0, false), s.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, dir)
			s := openAt(t, dir, longRetention)
			before := make(map[string]replay.Entry)
			var want []replay.ListedLog
			for entry, err := range s.List(t.Context(), "", "") {
				if err != nil {
					t.Fatal(err)
				}
				before[entry.Log] = entry
				for _, l := range byMetadata(entry.Log, entry.Head.Metadata) {
					want = append(want, replay.ListedLog{Log: entry.Log, At: l.At, Label: l.Label})
				}
			}
			slices.SortFunc(want, replay.ListedLog.Compare)
			if got := listed(t, s, "by metadata"); len(got) > 0 || len(want) < 3 {
				t.Fatalf("before there were lists: %v; there are to be %d", got, len(want))
			}
			left := len(want) / 2
			if err := s.Relist(t.Context(), func(log string, metadata []byte) []replay.Listing {
				if left--; left < 0 { // as where the process dies
					return []replay.Listing{{}}
				}
				return byMetadata(log, metadata)
			}); err == nil {
				t.Fatal("lists without a name were taken")
			}
			for range 2 { // and once more, when there is nothing to do
				if err := s.Relist(t.Context(), byMetadata); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, listed(t, s, "by metadata")); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openAt(t, dir, longRetention)
			}
			for entry, err := range s.List(t.Context(), "", "") {
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(before[entry.Log], entry, cmpopts.IgnoreFields(replay.Head{}, "Lists")); d != "" {
					t.Errorf("(-before +after):\n%s", d)
				}
				if _, _, _, err := s.Load(t.Context(), entry.Log); err != nil {
					t.Errorf("%s: %v", entry.Log, err)
				}
			}
			if err := s.Relist(t.Context(), func(log string, _ []byte) []replay.Listing {
				t.Errorf("%s is looked at again", log)
				return nil
			}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoteUnlisted gives lists to the logs of a store that was filled from an archive, which has none.
func TestNoteUnlisted(t *testing.T) {
	from := replay.NewMemory(longRetention)
	appendAll(t, from, []replay.Append{{Log: "a", Metadata: []byte("one"), Records: many(1, 2), End: true,
		Lists: []replay.Listing{{List: "by metadata", At: time.Unix(1, 0), Label: "one"}}}})
	var archive bytes.Buffer
	if _, err := replay.Export(t.Context(), from, &archive); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := openAt(t, dir, longRetention)
	if _, err := replay.Import(t.Context(), s, &archive); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.NoteUnlisted(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openAt(t, dir, longRetention)
	if err := s.Relist(t.Context(), byMetadata); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(listed(t, from, "by metadata"), listed(t, s, "by metadata")); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestListedCost holds that the first logs of a long list are read by one page, which decodes no heads.
func TestListedCost(t *testing.T) {
	s := openAt(t, t.TempDir(), replay.Settings{})
	const n = 2000
	for i := range n {
		appendAll(t, s, []replay.Append{{Log: fmt.Sprintf("t%05d", i), Metadata: make([]byte, 200),
			Lists: []replay.Listing{{List: "list", At: time.Unix(int64(1+i), 0)}}}})
	}
	page, err := s.listedPage(t.Context(), "list", replay.ListedLog{}, nil)
	if err != nil || len(page) != listedPage || page[0].Log != fmt.Sprintf("t%05d", n-1) {
		t.Fatalf("a page of %d, %v", len(page), err)
	}
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.DeleteRange([]byte{spaceHead}, []byte{spaceHead + 1}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.commit(b, 0, false); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, s, "list"); len(got) != n {
		t.Errorf("%d logs without their heads, want %d", len(got), n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
