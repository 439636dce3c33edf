// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestPurges: purges are made in order, one for each subject, and no more of them wait than may.
func TestPurges(t *testing.T) {
	var q purges
	for _, c := range []struct {
		purge
		fits bool
	}{
		{purge{"a", 3}, true}, {purge{"b", 5}, true}, {purge{"a", 7}, true}, {purge{"c", 8}, false}, {purge{"b", 4}, true},
	} {
		if fits := q.add(c.purge, 2); fits != c.fits {
			t.Errorf("%v fits: %t", c.purge, fits)
		}
	}
	var got []purge
	for p, ok := q.next(); ok; p, ok = q.next() {
		got = append(got, p)
	}
	if d := cmp.Diff([]purge{{"a", 7}, {"b", 5}}, got, cmp.AllowUnexported(purge{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !q.add(purge{"c", 9}, 2) {
		t.Error("nothing fits after all were made")
	}
}

// TestUnpurged: while too much waits to be purged, expired logs are kept, dropped ones are left; appends go on. The
// next owner purges the rest.
func TestUnpurged(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1, Settings: replay.Settings{Retention: time.Millisecond},
		maxPurges: -1})
	owner := claim(t, s, 0, "a")
	record := [][]byte{make([]byte, inlineBytes)}
	for _, a := range []replay.Append{
		{Log: "expired", Records: record, End: true},
		{Log: "dropped", Records: record}, {Log: "dropped", Expect: 1, Drop: true},
		{Log: "trimmed", Records: record}, {Log: "trimmed", Expect: 1, Records: record, Trim: 1, Snapshot: []byte("s")},
	} {
		if err := owner.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := owner.Head(t.Context(), "expired"); err != nil {
		t.Errorf("what has expired is not kept: %v", err)
	}
	if _, err := owner.Head(t.Context(), "dropped"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("what was dropped: %v", err)
	}
	if n := s.Counts().Unpurged; n != 2 {
		t.Errorf("what was left is counted as %d", n)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	c := s.config
	c.maxPurges = 0
	again := openStreams(t, connect(t, servers.URL()), c)
	owner = claim(t, again, 0, "b")
	defer owner.Close()
	// The head, the snapshot and two records of trimmed, the owner's record and the mark.
	patiently(t, func(ctx context.Context) error {
		stream, err := again.js.Stream(ctx, owner.st.name)
		if err == nil && stream.CachedInfo().State.Msgs != 6 {
			err = fmt.Errorf("the stream has %d messages, want 6", stream.CachedInfo().State.Msgs)
		}
		return err
	})
	if err := owner.Append(t.Context(), replay.Append{Log: "trimmed", Expect: 2, Records: record, Trim: 2,
		Snapshot: []byte("s")}); err != nil {
		t.Fatal(err)
	}
	patiently(t, func(ctx context.Context) error {
		stream, err := again.js.Stream(ctx, owner.st.name)
		if err == nil && stream.CachedInfo().State.Msgs != 5 {
			err = fmt.Errorf("the stream has %d messages, want 5", stream.CachedInfo().State.Msgs)
		}
		return err
	})
}
