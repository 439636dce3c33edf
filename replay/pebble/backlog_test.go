// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestBacklog appends to a log, and has each call that reads the store see all of it, although the database lacks the
// last appends until then.
func TestBacklog(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "store"), replay.Settings{})
	last := uint64(0)
	more := func(t *testing.T) {
		t.Helper()
		for range 3 {
			a := replay.Append{Log: "a", Expect: last, Records: texts("more"), Metadata: content("a", last),
				DueAt: time.Unix(int64(1000+last), 0)}
			if err := s.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			last++
		}
		if s.backlog.waiting.Load() == 0 {
			t.Fatal("nothing waits: this test shows nothing")
		}
	}
	for _, c := range []struct {
		name string
		see  func(t *testing.T) (uint64, error)
	}{
		{"Head", func(t *testing.T) (uint64, error) {
			h, err := s.Head(t.Context(), "a")
			if d := cmp.Diff(string(content("a", last-1)), string(h.Metadata)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			return h.Last, err
		}},
		{"Load", func(t *testing.T) (uint64, error) {
			_, _, records, err := s.Load(t.Context(), "a")
			return uint64(len(records)), err
		}},
		{"Read", func(t *testing.T) (uint64, error) {
			r := s.Read("a", 0)
			defer r.Close()
			records, _, err := r.Next(t.Context(), nil)
			return uint64(len(records)), err
		}},
		{"List", func(t *testing.T) (n uint64, err error) {
			for entry, e := range s.List(t.Context(), "", "") {
				n, err = entry.Head.Last, e
			}
			return n, err
		}},
		{"Due", func(t *testing.T) (n uint64, err error) {
			for due, e := range s.Due(t.Context(), 'a', time.Time{}, time.Unix(9999, 0)) {
				n, err = uint64(due.At.Unix())-1000+1, e
			}
			return n, err
		}},
		{"Backup", func(t *testing.T) (uint64, error) {
			if err := s.Backup(t.Context(), filepath.Join(dir, "copy")); err != nil {
				return 0, err
			}
			copied := openAt(t, filepath.Join(dir, "copy"), replay.Settings{})
			defer copied.Close()
			h, err := copied.Head(t.Context(), "a")
			return h.Last, err
		}},
		{"an append that is synced", func(t *testing.T) (uint64, error) {
			a := replay.Append{Log: "b", Records: texts("other"), Durable: true}
			if err := s.Append(t.Context(), a); err != nil {
				return 0, err
			}
			h, closer, err := storedHead(s.db, "a", 0)
			if err != nil {
				return 0, err
			}
			return h.Last, closer.Close()
		}},
		{"a full backlog", func(t *testing.T) (uint64, error) {
			for s.backlog.waiting.Load() != 0 {
				a := replay.Append{Log: "a", Expect: last, Records: texts("more")}
				if err := s.Append(t.Context(), a); err != nil {
					return 0, err
				}
				last++
			}
			h, closer, err := storedHead(s.db, "a", 0)
			if err != nil {
				return 0, err
			}
			return h.Last, closer.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			more(t)
			if got, err := c.see(t); got != last || err != nil {
				t.Errorf("it sees %d appends, %v, want %d", got, err, last)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestBacklogOrder appends to a log in turns such that some go through the backlog and others do not. The last one is
// what the database has.
func TestBacklogOrder(t *testing.T) {
	s := openAt(t, t.TempDir(), replay.Settings{})
	for i := range uint64(200) {
		a := replay.Append{Log: "a", Expect: i, Records: texts("one"), Metadata: content("a", i), Durable: i%3 == 2}
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	h, closer, err := storedHead(s.committed(), "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	if h.Last != 200 || string(h.Metadata) != string(content("a", 199)) {
		t.Errorf("the head has %d records and %q", h.Last, h.Metadata)
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestBacklogIsTheSame appends the same to two stores, of which one applies every batch at once. Both databases then
// have the same keys and values.
func TestBacklogIsTheSame(t *testing.T) {
	stores := []opened{openAt(t, t.TempDir(), replay.Settings{}), openAt(t, t.TempDir(), replay.Settings{})}
	rnd := rand.New(rand.NewPCG(1, 2))
	lasts, trims, revisions := make([]uint64, 20), make([]uint64, 20), make([]uint64, 20)
	sorted, unsorted := 0, 0
	for i := range 5000 {
		n := rnd.IntN(len(lasts))
		a := replay.Append{Log: fmt.Sprintf("log-%d", n), Expect: revisions[n], Metadata: fmt.Append(nil, i, " of all")}
		revisions[n]++
		for range 1 + rnd.IntN(3) {
			a.Records = append(a.Records, fmt.Append(nil, "record ", rnd.Uint64()))
		}
		if rnd.IntN(4) == 0 {
			a.DueAt = time.Unix(int64(1000+rnd.IntN(100)), 0)
		}
		if i > 2000 && rnd.IntN(50) == 0 {
			trims[n] += rnd.Uint64N(lasts[n] - trims[n] + 1)
			a.Trim, a.Snapshot = trims[n], fmt.Append(nil, "up to ", trims[n])
		}
		for _, s := range stores {
			if err := s.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		lasts[n] += uint64(len(a.Records))
		stores[1].drainBacklog()
		if l := &stores[0].backlog; l.waiting.Load() > 0 && rnd.IntN(100) == 0 {
			if l.mu.Lock(); l.sort() {
				sorted++
			} else {
				unsorted++
			}
			l.sorted.Reset()
			l.mu.Unlock()
			stores[0].drainBacklog()
		}
	}
	if sorted == 0 || unsorted == 0 {
		t.Errorf("%d backlogs were sorted, %d were not: this test shows less than it says", sorted, unsorted)
	}
	if d := cmp.Diff(keysOf(t, stores[1]), keysOf(t, stores[0])); d != "" {
		t.Errorf("applied at once, and together (-want +got):\n%s", d)
	}
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// keysOf returns all that a database has.
func keysOf(t *testing.T, s opened) map[string]string {
	t.Helper()
	all := make(map[string]string)
	it, err := s.committed().NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}
