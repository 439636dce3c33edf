// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestFollowed appends pieces to a running log, of which one may change more than its records. It has a head in the
// database only if it does. Read with and without memory of the log, the head is the same.
func TestFollowed(t *testing.T) {
	due := time.Unix(1_800_000_000, 0)
	lists := func(label string) []replay.Listing {
		return []replay.Listing{{List: "l", At: due, Label: label}}
	}
	for name, tc := range map[string]struct {
		change func(a *replay.Append)
		want   bool // a head
		after  bool // of the piece after it, too
		inline bool // which has its records in it
	}{
		"a piece":        {change: func(*replay.Append) {}},
		"several":        {change: func(a *replay.Append) { a.Records = texts("four", "five") }},
		"durable":        {change: func(a *replay.Append) { a.Durable = true }, want: true, after: true},
		"no record":      {change: func(a *replay.Append) { a.Records = nil }, want: true, after: true},
		"other metadata": {change: func(a *replay.Append) { a.Metadata = []byte("another") }, want: true, after: true},
		"large metadata": {change: func(a *replay.Append) { a.Metadata = make([]byte, restingMost+1) },
			want: true, after: true},
		"due":           {change: func(a *replay.Append) { a.DueAt = due.Add(1) }, want: true, after: true},
		"another label": {change: func(a *replay.Append) { a.Lists = lists("2") }, want: true, after: true},
		"another list": {change: func(a *replay.Append) { a.Lists = append(a.Lists, replay.Listing{List: "m"}) },
			want: true, after: true},
		"no lists": {change: func(a *replay.Append) { a.Lists = nil }, want: true, after: true},
		"left out": {change: func(a *replay.Append) { a.Skip = 7 }, want: true},
		"trimmed": {change: func(a *replay.Append) { a.Trim, a.Snapshot = 2, []byte("to 2") },
			want: true},
		"all trimmed": {change: func(a *replay.Append) { a.Trim, a.Snapshot = 4, []byte("to 4") },
			want: true, after: true, inline: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openAt(t, dir, replay.Settings{})
			defer func() { _ = s.Close() }()
			revision := uint64(0)
			appendTo := func(a replay.Append, want bool) {
				t.Helper()
				a.Expect = revision
				if err := s.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				revision++
				h, err := s.Head(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				stored, closer, err := storedHead(s.committed(), "a", 0)
				if err != nil {
					t.Fatal(err)
				}
				defer closer.Close()
				if got := stored.Revision == h.Revision; got != want {
					t.Errorf("the append %d has written a head: %v", revision, got)
				}
			}
			piece := func() replay.Append {
				return replay.Append{Log: "a", Records: texts("more"), Metadata: []byte("running"), DueAt: due, Lists: lists("1")}
			}
			started := piece()
			started.Durable = true
			appendTo(started, true)
			appendTo(piece(), true) // the first one
			appendTo(piece(), false)
			changed := piece()
			tc.change(&changed)
			appendTo(changed, tc.want)
			appendTo(piece(), tc.after)
			want, err := s.Head(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, dir, replay.Settings{})
			for entry, err := range s.List(t.Context(), "", "") {
				if diff := cmp.Diff(want, entry.Head, cmpopts.EquateEmpty()); diff != "" || err != nil {
					t.Errorf("listed: %v (-want +got):\n%s", err, diff)
				}
			}
			got, _, records, err := s.Load(t.Context(), "a")
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if n := len(records); uint64(n) != want.Kept() || n > 0 && !bytes.Equal(records[n-1].Data, []byte("more")) {
				t.Errorf("it has %d records", n)
			}
			appendTo(piece(), tc.inline)
		})
	}
}

// TestFollowedBounds appends many pieces, and large ones: few of them are behind the stored head.
func TestFollowedBounds(t *testing.T) {
	for name, tc := range map[string]struct{ pieces, size int }{
		"many":        {3 * followedEntries, 2},
		"large":       {20, followedBytes / 4},
		"larger ones": {6, 2 * followedBytes},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, t.TempDir(), replay.Settings{})
			heads, last := 0, uint64(0)
			for i := range uint64(tc.pieces) {
				a := replay.Append{Log: "a", Expect: i, Records: [][]byte{make([]byte, tc.size)}}
				if err := s.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				stored, closer, err := storedHead(s.committed(), "a", 0)
				if err != nil {
					t.Fatal(err)
				}
				n := i + 1 - stored.Last
				if n >= followedEntries || int(n)*tc.size > followedBytes {
					t.Errorf("after %d pieces of %d bytes, %d are behind the head", i+1, tc.size, n)
				}
				if last != stored.Last {
					heads, last = heads+1, stored.Last
				}
				if err := closer.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if want := 3 + max(tc.pieces/followedEntries, tc.pieces*tc.size/followedBytes); heads > want {
				t.Errorf("%d heads were written, want at most %d", heads, want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
