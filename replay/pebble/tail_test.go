// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// openTail opens an empty store for the time of a test.
func openTail(t testing.TB) *Store {
	s, err := open(smallDisk(), "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.logs.tails.Load(); n != 0 {
			t.Errorf("%d bytes of tails are left without readers", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestTail has a reader keep up with a log without its records in the database: it does not need them there.
func TestTail(t *testing.T) {
	s := openTail(t)
	r := s.Read("a", 0)
	defer r.Close()
	for i := range uint64(50) {
		record := fmt.Appendf(nil, "record %d", i+1)
		if err := s.Append(t.Context(), replay.Append{Log: "a", Expect: i, Records: [][]byte{record}}); err != nil {
			t.Fatal(err)
		}
		if i > 0 { // the first one was not in the tail, since no reader had begun
			first, end := appendEntryKey(nil, "a", i+1), appendEntryKey(nil, "a", i+2)
			if err := s.committed().DeleteRange(first, end, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		records, more, err := r.Next(t.Context(), nil)
		if err != nil || more || len(records) != 1 || !bytes.Equal(records[0].Data, record) {
			t.Fatalf("after %d: %v, %t, %v", i, records, more, err)
		}
		if i%2 == 0 {
			if records, _, err := r.Next(t.Context(), nil); err != nil || len(records) > 0 {
				t.Fatalf("%d records, %v, when it has caught up", len(records), err)
			}
		}
		r.Wake(func() {})
	}
	behind := s.Read("a", 1)
	defer behind.Close()
	if _, _, err := behind.Next(t.Context(), nil); !errors.Is(err, errDamaged) {
		t.Errorf("one that is behind has %v, but the records are lost", err)
	}
}

// TestTailModel has readers of all kinds read logs appended to, trimmed and ended at random. The records a reader holds
// stay as they are, and the tails stay within their bounds.
func TestTailModel(t *testing.T) {
	for seed := range uint64(30 / min(3, sparse)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := openTail(t)
			if seed%3 == 0 {
				s.logs.tails.Store(tailsBytes) // bytes of other logs
				defer s.logs.tails.Add(-tailsBytes)
			}
			modelTail(t, s, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

// dataOf is the data of a record, determined by its number.
func dataOf(seq uint64) []byte {
	sizes := []int{1, 10, 200, 3000, 20_000, 150_000}
	n := sizes[seq*seq%31%uint64(len(sizes))]
	if seq%7 > 0 {
		n = min(n, 300)
	}
	return bytes.Repeat(fmt.Appendf(nil, "%08d", seq), n/8+1)
}

// modelReader is a reader, and the records it has read.
type modelReader struct {
	replay.Reader
	at   uint64
	held []replay.Record
	woke bool
}

func modelTail(t *testing.T, s *Store, rnd *rand.Rand) {
	var readers []*modelReader
	defer func() {
		for _, r := range readers {
			r.Close()
		}
	}()
	last, first, revision := uint64(0), uint64(1), uint64(0)
	check := func(r *modelReader) {
		t.Helper()
		for _, rec := range r.held {
			if !bytes.Equal(rec.Data, dataOf(rec.Seq)) {
				t.Fatalf("record %d is %.20q of %d bytes", rec.Seq, rec.Data, len(rec.Data))
			}
		}
	}
	appendRecords := func(end bool) {
		a := replay.Append{Log: "a", Expect: revision, End: end}
		revision++
		for range rnd.IntN(20) {
			last++
			a.Records = append(a.Records, dataOf(last))
		}
		if rnd.IntN(10) == 0 && last > first {
			a.Trim = first + rnd.Uint64N(last-first)
			a.Snapshot = []byte("s")
			first = a.Trim + 1
		}
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if n := s.logs.tails.Load(); n > tailsBytes+tailBytes {
			t.Fatalf("the tails have %d bytes", n)
		}
	}
	next := func(r *modelReader) (done bool) {
		records, more, err := r.Next(t.Context(), nil)
		r.held = records
		if gone, ok := errors.AsType[*replay.CompactedError](err); ok && gone.First == first && r.at+1 < first {
			return true
		}
		if err == io.EOF && r.at == last {
			return true
		}
		if err != nil || len(records) == 0 && r.at < last {
			t.Fatalf("at %d of %d: %d records, %v", r.at, last, len(records), err)
		}
		for _, rec := range records {
			if r.at++; rec.Seq != r.at {
				t.Fatalf("record %d, want %d", rec.Seq, r.at)
			}
		}
		if more != (r.at < last) {
			t.Fatalf("at %d of %d: more is %t", r.at, last, more)
		}
		check(r)
		return false
	}
	appendRecords(false)
	for range 400 {
		for _, r := range readers {
			check(r)
		}
		switch n := rnd.IntN(10); {
		case n < 2:
			appendRecords(false)
		case n == 2 && len(readers) < 6:
			at := max(first-1, last-min(last, rnd.Uint64N(20)))
			readers = append(readers, &modelReader{Reader: s.Read("a", at), at: at})
		case len(readers) == 0:
		case n == 3:
			i := rnd.IntN(len(readers))
			readers[i].Close()
			readers = append(readers[:i], readers[i+1:]...)
		default:
			i := rnd.IntN(len(readers))
			r := readers[i]
			if rnd.IntN(3) == 0 {
				r.held, r.woke = nil, false
				r.Wake(func() { r.woke = true })
				continue
			}
			if next(r) {
				r.Close()
				readers = append(readers[:i], readers[i+1:]...)
			}
		}
	}
	appendRecords(true)
	for _, r := range readers {
		for !next(r) {
		}
	}
}

// TestTailAllocations proves that a reader keeping up allocates nothing, and its wake-ups neither.
func TestTailAllocations(t *testing.T) {
	s := openTail(t)
	l := s.logs.use("a")
	defer s.logs.leave(l)
	if err := s.Append(t.Context(), replay.Append{Log: "a", Records: [][]byte{dataOf(1)}}); err != nil {
		t.Fatal(err)
	}
	var readers [20]replay.Reader
	for i := range readers {
		readers[i] = s.Read("a", 0)
		defer readers[i].Close()
	}
	records := [][]byte{[]byte("a"), []byte("b")}
	wake := func() {}
	step := func() {
		for _, r := range readers {
			for {
				records, _, err := r.Next(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(records) == 0 {
					break
				}
			}
			r.Wake(wake)
		}
	}
	step()
	head := l.head
	if n := testing.AllocsPerRun(100, func() {
		head.Last += 2
		l.publish(head, records)
		l.waiters.Call()
		step()
	}); n > 4 { // the race detector has pools forget some of their content
		t.Errorf("%v allocations for each append and its %d readers", n, len(readers))
	}
}
