// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// history makes random appends to many logs: they begin, grow, are trimmed and end.
type history struct {
	rnd      *rand.Rand
	last     [10]uint64        // of each writer's present log
	revision [10]uint64        // likewise
	life     [10]int           // number of its logs so far
	before   [10]replay.Append // the last append to it
	made     []replay.Append
}

// next returns the next append. Its records have its number, from 1, and so have its metadata, but for a piece of a
// stream.
func (h *history) next() replay.Append {
	w := h.rnd.IntN(len(h.last))
	number := binary.BigEndian.AppendUint64(nil, uint64(len(h.made)+1))
	a := replay.Append{
		Log:      fmt.Sprintf("%c%d", 'a'+w, h.life[w]),
		Expect:   h.revision[w],
		Metadata: number,
		Durable:  h.rnd.IntN(8) == 0,
		End:      h.rnd.IntN(40) == 0,
	}
	if h.rnd.IntN(2) == 0 {
		a.DueAt = time.Unix(int64(h.rnd.IntN(1000)), 0).UTC()
	}
	records := h.rnd.IntN(4)
	if h.revision[w] > 0 && h.rnd.IntN(2) == 0 { // a piece of a stream
		a.Metadata, a.DueAt, a.Durable, a.End = h.before[w].Metadata, h.before[w].DueAt, false, false
		records = max(records, 1)
	}
	for range records {
		h.last[w]++
		r := append(make([]byte, 0, 3000), number...)
		r = fmt.Appendf(r, "%s %d", a.Log, h.last[w])[:8+h.rnd.IntN(cap(r)-8)]
		a.Records = append(a.Records, r)
	}
	if h.last[w] > 0 && h.rnd.IntN(20) == 0 {
		a.Trim = 1 + h.rnd.Uint64N(h.last[w])
		a.Snapshot = fmt.Appendf(nil, "until %d", a.Trim)
		a.Metadata = number
	}
	h.revision[w]++
	h.before[w] = a
	if a.End {
		h.last[w], h.revision[w] = 0, 0
		h.life[w]++
	}
	h.made = append(h.made, a)
	return a
}

// stored is the content of a store, without the times of the ends of logs.
type stored map[string]struct {
	Head     replay.Head
	Snapshot []byte
	Records  string
	Due      bool
}

// textOf returns records as one text. Compared one by one they take ten times as long.
func textOf(records []replay.Record) string {
	var b []byte
	for _, r := range records {
		b = strconv.AppendBool(append(strconv.AppendUint(b, r.Seq, 10), ' '), r.More)
		b = append(append(append(b, ' '), r.Data...), '\n')
	}
	return string(b)
}

// contentsOf returns the contents of a store, and the number of the last append in it.
func contentsOf(t *testing.T, s replay.Store) (all stored, last uint64) {
	t.Helper()
	all = make(stored)
	for entry, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		h, snapshot, records, err := s.Load(t.Context(), entry.Log)
		if err != nil {
			t.Fatalf("log %s: %v", entry.Log, err)
		}
		last = max(last, binary.BigEndian.Uint64(h.Metadata))
		if n := len(records); n > 0 {
			last = max(last, binary.BigEndian.Uint64(records[n-1].Data))
		}
		if !h.Ended.IsZero() {
			h.Ended = time.Unix(0, 0)
		}
		h.DueAt, h.Lost = h.DueAt.UTC(), 0
		one := all[entry.Log]
		one.Head, one.Snapshot = h, snapshot
		one.Records = textOf(records)
		all[entry.Log] = one
	}
	for class := byte('a'); class <= 'j'; class++ {
		for due, err := range s.Due(t.Context(), class, replay.Recover, time.Unix(1e9, 0)) {
			if err != nil {
				t.Fatal(err)
			}
			one := all[due.Log]
			one.Due = true
			all[due.Log] = one
		}
	}
	return all, last
}

// tear makes a copy of the last segment of a journal end as if the process had died while it wrote a record, perhaps
// the second part of a batch.
func tear(t *testing.T, system vfs.FS, rnd *rand.Rand, j *wal.Journal) {
	t.Helper()
	number, length := j.Position()
	if number == 0 {
		return
	}
	payload := bytes.Repeat([]byte{0xa5}, rnd.IntN(1000))
	var b []byte
	if rnd.IntN(2) == 0 {
		part := (&segment.Part{Bytes: payload}).Append(nil)
		b = segment.Append(b, number, segment.KindPart, part, segment.Sum(part))
	}
	whole := len(b)
	b = segment.Append(b, number, segment.KindBatch, payload, segment.Sum(payload))
	f, err := system.OpenReadWrite(segmentPath(number), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(b[:whole+rnd.IntN(len(b)-whole)], length)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestCrashes ends a store at random moments of a random history, and the machine with it, or the process. The store is
// found as it was after one of the appends. This one is not before the last durable one, nor, if only the process has
// died, before the last one returned: the same as a store in memory after this append.
func TestCrashes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(25 / min(5, sparse)) {
		rnd := rand.New(rand.NewPCG(seed, round))
		h := history{rnd: rnd}
		disk := crashableDisk()
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 32 << 20, TotalBytes: 32 << 20})
		setBoot(t, disk, "one")
		var durable, appended uint64
		for range 1 + rnd.IntN(3) { // the store has had crashes already
			s, err := open(disk, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			for range rnd.IntN(1000) {
				a := h.next()
				if err := s.Append(context.Background(), a); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				appended++
				if a.Durable {
					durable = appended
				}
				if rnd.IntN(200) == 0 { // a flush comes at any time
					if err := s.committed().Flush(); err != nil {
						t.Fatal(err)
					}
				}
			}
			left := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rnd}
			lost := rnd.IntN(2) == 0
			if lost {
				left.UnsyncedDataPercent = rnd.IntN(101)
			}
			crashed := crash(disk, left)
			if lost {
				setBoot(t, crashed, fmt.Sprint("another ", round))
			} else {
				tear(t, crashed, rnd, s.journal)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			disk = crashed
			s, err = open(disk, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			got, last := contentsOf(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if last < durable || last > appended || !lost && last != appended {
				t.Fatalf("round %d: found append %d of %d, the last durable one is %d", round, last, appended, durable)
			}
			model := replay.NewMemory(replay.Settings{})
			for _, a := range h.made[:last] {
				if err := model.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			want, _ := contentsOf(t, model)
			for log := range got {
				if d := cmp.Diff(want[log], got[log], cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("round %d, after append %d of %d, log %s (-want +got):\n%.4000s", round, last, appended, log, d)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("round %d, after append %d of %d: %d logs, want %d", round, last, appended, len(got), len(want))
			}
			if lost { // a log may leave out numbers now, and the model does not know them
				break
			}
		}
	}
}

// TestFlushedFirst has Pebble flush unsynced records, and the machine go down: tables never have records missing in the
// journal.
func TestFlushedFirst(t *testing.T) {
	disk := crashableDisk()
	s, err := open(disk, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	appendRecords(t, s, "a", true, "a1")
	appendRecords(t, s, "a", false, "a2", "a3")
	if err := s.committed().Flush(); err != nil {
		t.Fatal(err)
	}
	lost := crash(disk, vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = open(lost, "/store", replay.Settings{}, quiet); err != nil {
		t.Fatal(err)
	}
	got, err := after(t, s, "a", 0)
	if d := cmp.Diff([]string{"1 a1", "2 a2", "3 a3"}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
