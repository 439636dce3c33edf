// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// numberOf returns the number of the segment with a path.
func numberOf(t *testing.T, path string) uint64 {
	t.Helper()
	name := path[strings.LastIndex(path, "/")+1:]
	number, err := strconv.ParseUint(strings.TrimSuffix(name, segment.Ext), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// batchesIn returns the batches in a segment.
func batchesIn(t *testing.T, system vfs.FS, path string) (batches [][]byte) {
	t.Helper()
	_, err := segment.Read(system, path, func(r io.Reader, size int64) error {
		_, err := segment.Scan(r, size, numberOf(t, path), func(kind byte, payload []byte) error {
			if kind == segment.KindBatch {
				batches = append(batches, payload)
			}
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return batches
}

// writeSegment makes a segment with batches as its records. It returns the number of their bytes.
func writeSegment(t *testing.T, system vfs.FS, number uint64, h segment.Header, batches ...[]byte) uint64 {
	t.Helper()
	payload := h.Append(nil)
	b := segment.Append(nil, number, segment.KindStart, payload, segment.Sum(payload))
	for _, batch := range batches {
		b = segment.Append(b, number, segment.KindBatch, batch, segment.Sum(batch))
	}
	create(t, system, segmentPath(number), b)
	return uint64(len(b))
}

func segmentPath(number uint64) string { return fmt.Sprintf("/store/%012d.journal", number) }

// TestReplay opens stores with a journal of several segments, whole or not.
func TestReplay(t *testing.T) {
	disk := crashableDisk()
	s, err := open(disk, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []string{"1", "2", "3", "4"} {
		appendRecords(t, s, "a", true, r)
	}
	crashed := crash(disk, vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	batches := batchesIn(t, crashed, segmentPath(1))
	last := len(batches) - 4 // the first batch of the log
	for name, test := range map[string]struct {
		spoil func(t *testing.T, system vfs.FS)
		want  uint64 // records of the log
		err   string // in the error; empty if the store is opened
	}{
		"whole": {func(t *testing.T, system vfs.FS) {}, 4, ""},
		"the last one is torn": {func(t *testing.T, system vfs.FS) {
			truncate(t, system, segmentPath(9), 1)
		}, 3, ""},
		"the last one is torn in its first record": {func(t *testing.T, system vfs.FS) {
			create(t, system, segmentPath(9), contents(t, system, segmentPath(9))[:10])
		}, 2, ""},
		"the last one is empty": {func(t *testing.T, system vfs.FS) {
			create(t, system, segmentPath(9), nil)
		}, 2, ""},
		"the last one has what it had as another one": {func(t *testing.T, system vfs.FS) {
			create(t, system, segmentPath(9), contents(t, system, segmentPath(7)))
		}, 2, ""},
		"an older one has a record after its end": {func(t *testing.T, system vfs.FS) {
			b := contents(t, system, segmentPath(8))
			foreign := segment.Append(nil, 8, segment.KindBatch, []byte("no batch"), segment.Sum([]byte("no batch")))
			create(t, system, segmentPath(8), append(b, foreign...))
		}, 4, ""},
		"other files": {func(t *testing.T, system vfs.FS) {
			create(t, system, "/store/8.journal", []byte("x"))
			create(t, system, "/store/x.journal", []byte("x"))
		}, 4, ""},
		"an older one is torn": {func(t *testing.T, system vfs.FS) {
			truncate(t, system, segmentPath(8), 1)
		}, 0, "000000000008.journal is damaged at byte "},
		"an older one is changed": {func(t *testing.T, system vfs.FS) {
			b := contents(t, system, segmentPath(7))
			b[len(b)-1] ^= 1
			create(t, system, segmentPath(7), b)
		}, 0, "000000000007.journal is damaged at byte "},
		"an older one is empty": {func(t *testing.T, system vfs.FS) {
			create(t, system, segmentPath(7), nil)
		}, 0, "000000000007.journal is damaged at its beginning"},
		"one is missing": {func(t *testing.T, system vfs.FS) {
			if err := system.Remove(segmentPath(8)); err != nil {
				t.Fatal(err)
			}
		}, 0, "000000000008.journal is missing; the store is damaged"},
		"a format that is newer": {func(t *testing.T, system vfs.FS) {
			payload := []byte{segment.Version + 1, 1, 1}
			create(t, system, segmentPath(9),
				segment.Append(nil, 9, segment.KindStart, payload, segment.Sum(payload)))
		}, 0, "it has the format 2, but this version knows only 1"},
		"a record of a kind that is newer": {func(t *testing.T, system vfs.FS) {
			b := contents(t, system, segmentPath(9))
			create(t, system, segmentPath(9), segment.Append(b, 9, 77, nil, 0))
		}, 0, "it has a record of kind 77"},
	} {
		t.Run(name, func(t *testing.T) {
			system := crash(crashed, vfs.CrashCloneCfg{})
			if err := system.Remove(segmentPath(1)); err != nil {
				t.Fatal(err)
			}
			setFlushed(t, system, 6)
			h := segment.Header{First: 7}
			h.End = writeSegment(t, system, 7, h, batches[:last+1]...)
			h.End = writeSegment(t, system, 8, h, batches[last+1])
			writeSegment(t, system, 9, h, batches[last+2:]...)
			test.spoil(t, system)
			for range 2 { // the first opening changes nothing for the second one
				s, err := open(system, "/store", replay.Settings{}, quiet)
				if test.err != "" {
					if err == nil || !strings.Contains(err.Error(), test.err) {
						t.Fatalf("error %v, want one with %q", err, test.err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				checkRecords(t, s, test.want)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// setFlushed has the tables of a store record all segments up to a number as flushed.
func setFlushed(t *testing.T, system vfs.FS, number uint64) {
	t.Helper()
	db, err := pebble.Open("/store", &pebble.Options{FS: system, FormatMajorVersion: disk.PebbleFormat,
		DisableWAL: true, Logger: logger{quiet}})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Set(flushedKey, binary.AppendUvarint(nil, number), pebble.NoSync)
	if err := errors.Join(err, db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// checkRecords wants the log "a" to have the records "1" to last.
func checkRecords(t *testing.T, s *Store, last uint64) {
	t.Helper()
	_, _, records, err := s.Load(t.Context(), "a")
	if err != nil || uint64(len(records)) != last {
		t.Fatalf("%d records, %v, want %d", len(records), err, last)
	}
	for i, r := range records {
		if string(r.Data) != strconv.Itoa(i+1) {
			t.Errorf("record %d is %q", i+1, r.Data)
		}
	}
}

// TestSegments has many segments. They are kept only until they are flushed, and their files are used again.
func TestSegments(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var made []string
		system := smallDisk()
		s, err := open(watchedFS{system, ofLog(func(op string) error {
			if op == "create" {
				made = append(made, op)
			}
			return nil
		})}, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(100) {
			a := replay.Append{Log: "a", Expect: i, Records: [][]byte{make([]byte, 100_000)}}
			if err := s.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // for the flush
			if files := filesWith(t, system, "/store", segment.Ext); len(files) > 2 {
				t.Fatalf("%d segments: %v", len(files), files)
			}
		}
		if len(made) < 9 {
			t.Errorf("%d segments were made", len(made))
		}
		// One larger than the others is not kept.
		for i := range uint64(2) {
			a := replay.Append{Log: "b", Expect: i, Records: [][]byte{make([]byte, 5<<20)}, Durable: true}
			if err := s.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Append(t.Context(), replay.Append{Log: "a", Expect: 100, Records: [][]byte{{0}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, file := range filesWith(t, system, "/store", segment.Ext) {
			if n := len(contents(t, system, file)); n > 2<<20 {
				t.Errorf("%s has %d bytes", file, n)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		// Flushed batches are not replayed.
		files := filesWith(t, system, "/store", segment.Ext)
		last := numberOf(t, files[len(files)-1]) // has nothing: the store was closed
		if s, err = open(system, "/store", replay.Settings{}, quiet); err != nil {
			t.Fatal(err)
		}
		if flushed, err := flushedIn(s.db); err != nil || flushed < last-2 {
			t.Errorf("of %d segments, %d are flushed, %v", last, flushed, err)
		}
		checkZeros(t, s, "a", 101)
		checkZeros(t, s, "b", 2)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestMaxLost appends as many records as a loss of power could take. It can take fewer than the numbers left out after
// one.
func TestMaxLost(t *testing.T) {
	disk := crashableDisk()
	s, err := open(disk, "/store", replay.Settings{Sync: replay.SyncNever}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for i, n := range []int{maxLost / 2, maxLost/2 + 1, maxLost, 1} {
		a := replay.Append{Log: "a", Expect: uint64(i), Records: make([][]byte, n)}
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		last += uint64(n)
		lost := crash(disk, vfs.CrashCloneCfg{})
		found, err := open(lost, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		h, err := found.Head(t.Context(), "a")
		if err != nil && !errors.Is(err, replay.ErrNotFound) {
			t.Fatal(err)
		}
		if last-h.Last >= maxLost {
			t.Errorf("%d records of %d were lost", last-h.Last, last)
		}
		if err := found.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
