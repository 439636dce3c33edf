// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// TestBacklog appends to a log, and has each reading call see all of it, although the database lacks the last appends
// until then.
func TestBacklog(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "store"), replay.Settings{})
	last := uint64(0)
	more := func(t *testing.T) {
		t.Helper()
		for range 3 {
			a := replay.Append{Log: "a", Expect: last, Records: texts("more"), Metadata: content("a", last),
				DueAt: time.Unix(int64(1000+last), 0), Durable: last%2 == 0}
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
		{"a large append", func(t *testing.T) (uint64, error) {
			a := replay.Append{Log: "a", Expect: last, Records: [][]byte{make([]byte, 2*smallBatch)}}
			if err := s.Append(t.Context(), a); err != nil {
				return 0, err
			}
			last++
			h, closer, err := storedHead(s.db, "a", 0)
			if err != nil {
				return 0, err
			}
			return h.Last, closer.Close()
		}},
		{"a full backlog", func(t *testing.T) (uint64, error) {
			for s.backlog.waiting.Load() != 0 {
				a := replay.Append{Log: "a", Expect: last, Records: texts("more"), Metadata: content("a", last)}
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

// TestBacklogOfOthers has calls for one log leave the batches of another one in place. So does the next command of a
// resting task.
func TestBacklogOfOthers(t *testing.T) {
	bubble.Test(t, backlogOfOthers)
}

func backlogOfOthers(t *testing.T) {
	s := openAt(t, t.TempDir(), replay.Settings{})
	apart := func(log string) string { // a name with another bit than all logs in the backlog
		for {
			word, bit := s.backlog.bitOf(log)
			wordA, bitA := s.backlog.bitOf("a")
			wordB, bitB := s.backlog.bitOf("b")
			if (word != wordA || bit != bitA) && (word != wordB || bit != bitB) {
				return log
			}
			log += "+"
		}
	}
	inMemory, ended, large := "b", apart("c"), apart("d")
	appendAll(t, s.Store, []replay.Append{
		{Log: ended, Records: texts("one"), Durable: true},
		{Log: ended, Expect: 1, Records: texts("two"), Durable: true, End: true},
	})
	synctest.Wait() // for the sweeper to have looked at what has ended
	s.drainBacklog()
	appendAll(t, s.Store, []replay.Append{
		{Log: "a", Records: texts("waits")},
		{Log: inMemory, Records: texts("one", "two"), Metadata: []byte("of b"), Durable: true},
	})
	waiting := s.backlog.waiting.Load()
	for _, c := range []struct {
		name string
		call func() (int, error)
		want int
		adds int32 // to the backlog
	}{
		{"Head", func() (int, error) {
			h, err := s.Head(t.Context(), ended)
			return int(h.Last), err
		}, 2, 0},
		{"Load", func() (int, error) {
			_, _, records, err := s.Load(t.Context(), ended)
			return len(records), err
		}, 2, 0},
		{"Read", func() (int, error) {
			r := s.Read(ended, 1)
			defer r.Close()
			records, _, err := r.Next(t.Context(), nil)
			return len(records), err
		}, 1, 0},
		{"Head of one that rests", func() (int, error) {
			h, err := s.Head(t.Context(), inMemory)
			return len(h.Metadata), err
		}, 4, 0},
		{"Load of one that rests", func() (int, error) {
			_, _, records, err := s.Load(t.Context(), inMemory)
			return len(records), err
		}, 2, 0},
		{"the next command of one that rests", func() (int, error) {
			return 0, s.Append(t.Context(), replay.Append{Log: inMemory, Expect: 1, Records: texts("three"), Durable: true})
		}, 0, 1},
		{"a large append", func() (int, error) {
			return 0, s.Append(t.Context(), replay.Append{Log: large, Records: [][]byte{make([]byte, 2*smallBatch)}})
		}, 0, 0},
	} {
		if got, err := c.call(); got != c.want || err != nil {
			t.Errorf("%s: %d, %v, want %d", c.name, got, err, c.want)
		}
		if waiting += c.adds; s.backlog.waiting.Load() != waiting {
			t.Errorf("%s: %d batches wait, want %d", c.name, s.backlog.waiting.Load(), waiting)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestBacklogWhileApplied has appends succeed while the batches before them are applied. Beside a large batch this
// takes long. A reading call sees all of them.
func TestBacklogWhileApplied(t *testing.T) {
	s := openAt(t, t.TempDir(), replay.Settings{})
	l := &s.backlog
	appendAll(t, s.Store, []replay.Append{
		{Log: "a", Records: texts("one"), Durable: true}, // and rests, so the next one reads nothing
		{Log: "b", Records: texts("one")},
	})
	l.applying.Lock()
	l.take(s.db)
	appendAll(t, s.Store, []replay.Append{
		{Log: "a", Expect: 1, Records: texts("two"), Durable: true},
		{Log: "c", Records: texts("one"), Durable: true},
	})
	for _, log := range []string{"a", "b", "c"} {
		if word, bit := l.bitOf(log); (l.logs[0][word].Load()|l.logs[1][word].Load())&bit == 0 {
			t.Errorf("a reader of %q does not know that the backlog has it", log)
		}
	}
	read := make(chan error)
	go func() {
		_, _, records, err := s.Load(t.Context(), "a")
		if err == nil && len(records) != 2 {
			err = fmt.Errorf("it has %d records", len(records))
		}
		read <- err
	}()
	if err := l.applied.Commit(pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	l.applied.Reset()
	l.applying.Unlock()
	if err := <-read; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestRestingIsTheSame asks for logs right after each append, and again when the memory of them is dropped: the
// database says the same.
func TestRestingIsTheSame(t *testing.T) {
	s, err := open(smallDisk(), "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	history := history{rnd: rand.New(rand.NewPCG(1, 3))}
	type answer struct {
		Head, Again replay.Head
		Snapshot    string
		Records     string
	}
	ask := func(log string) (a answer) {
		var errs [2]error
		a.Head, errs[0] = s.Head(t.Context(), log)
		_, snapshot, records, err := s.Load(t.Context(), log)
		a.Again, errs[1] = s.Head(t.Context(), log)
		if err := errors.Join(err, errs[0], errs[1]); err != nil {
			t.Fatal(err)
		}
		a.Snapshot = string(snapshot)
		a.Records = textOf(records)
		return a
	}
	rested, inline := 0, 0
	for range 1000 {
		a := history.next()
		a.Durable = a.Durable || history.rnd.IntN(2) == 0
		appendAll(t, s, []replay.Append{a})
		l := s.logs.use(a.Log)
		if l.rests {
			if rested++; l.resting.entry != nil {
				inline++
			}
		}
		kept := ask(a.Log)
		l.resting, l.rests = head{}, false
		if d := cmp.Diff(ask(a.Log), kept, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("in the database, and kept (-want +got):\n%s", d)
		}
		s.logs.leave(l)
	}
	if rested < 300 || inline < 10 {
		t.Errorf("%d logs rested, %d with an entry: this test shows less than it says", rested, inline)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestBacklogOrder appends to a log in turns, some through the backlog and others not. The last one is in the database.
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

// TestBacklogIsTheSame appends the same to two stores; one of them applies every batch at once. Both databases then
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
		if l := &stores[0].backlog; l.waiting.Load() > 0 && l.sorted != nil && rnd.IntN(100) == 0 {
			if l.sort(l.batch) {
				sorted++
			} else {
				unsorted++
			}
			l.sorted.Reset()
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

// keysOf returns the whole content of a database.
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
