// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// TestFormat refuses a store of another format, whatever its journal is, and changes nothing in it.
func TestFormat(t *testing.T) {
	for _, other := range []string{"aip-gateway replay 5", "aip-gateway store 2"} {
		disk := crashableDisk()
		s, err := open(disk, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.db.Set(formatKey, []byte(other), pebble.NoSync), s.db.Flush(), s.Close()); err != nil {
			t.Fatal(err)
		}
		files := func() map[string]string {
			all := make(map[string]string)
			for _, path := range filesWith(t, disk, "/store", "") {
				if path != "/store/LOCK" {
					all[path] = string(contents(t, disk, path))
				}
			}
			return all
		}
		for _, path := range filesWith(t, disk, "/store", segment.Ext) {
			create(t, disk, path, []byte("of another format"))
		}
		create(t, disk, "/store/"+intentsName, []byte("likewise"))
		before := files()
		want := fmt.Sprintf("/store has the format %q, and this version knows only %q; use the version that made it, or "+
			"set an empty directory", other, format)
		for range 2 {
			s, err := openReadOnly(disk, "/store", quiet)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, %v, want an error with %q", s, err, want)
			}
			s, err = open(disk, "/store", replay.Settings{}, quiet)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, %v, want an error with %q", s, err, want)
			}
		}
		for _, path := range []string{segment.Name(1), intentsName} {
			if d := cmp.Diff(before["/store/"+path], files()["/store/"+path]); d != "" {
				t.Errorf("%s (-before +after):\n%s", path, d)
			}
		}
	}
}

// makeOld gives a closed store the tables of a store made before large values had files of their own.
func makeOld(t *testing.T, system vfs.FS) {
	t.Helper()
	open := func(dir string, o pebble.Options) *pebble.DB {
		o.FS, o.DisableWAL, o.Logger = system, true, logger{quiet}
		db, err := pebble.Open(dir, &o)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	from := open("/store", pebble.Options{FormatMajorVersion: disk.PebbleFormat, ReadOnly: true})
	to := open("/old", pebble.Options{FormatMajorVersion: disk.OldPebbleFormat})
	it, err := from.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := to.Set(it.Key(), it.Value(), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(it.Error(), it.Close(), from.Close(), to.Flush(), to.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range filesWith(t, system, "/store", "") {
		if path.Ext(name) != segment.Ext && path.Base(name) != intentsName {
			if err := system.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range filesWith(t, system, "/old", "") {
		create(t, system, path.Join("/store", path.Base(name)), contents(t, system, name))
	}
	if got := pebbleFormat(t, system); got != disk.OldPebbleFormat {
		t.Fatalf("the old store has the format %d", got)
	}
}

// pebbleFormat returns Pebble's version of the database of a store.
func pebbleFormat(t *testing.T, system vfs.FS) pebble.FormatMajorVersion {
	t.Helper()
	desc, err := pebble.Peek("/store", system)
	if err != nil {
		t.Fatal(err)
	}
	return desc.FormatMajorVersion
}

// TestOldFormat opens a store whose tables have all values in them: to be read, which changes nothing; to be written
// on a disk that fails at each of its changes in turn; and at last for good. All logs are there.
func TestOldFormat(t *testing.T) {
	system := crashableDisk()
	system.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 32 << 20, TotalBytes: 32 << 20})
	s, err := open(system, "/store", longRetention, quiet)
	if err != nil {
		t.Fatal(err)
	}
	h := history{rnd: rand.New(rand.NewPCG(1, 2))}
	appendNext := func(s *Store, n int) {
		t.Helper()
		for range n {
			if err := s.Append(t.Context(), h.next()); err != nil {
				t.Fatal(err)
			}
		}
	}
	appendNext(s, 300)
	want, _ := contentsOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	makeOld(t, system)
	check := func(when string, s *Store, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got, _ := contentsOf(t, s); !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
			t.Errorf("%s (-want +got):\n%.4000s", when, cmp.Diff(want, got, cmpopts.EquateEmpty()))
		}
	}
	before := filesWith(t, system, "/store", "")
	s, err = openReadOnly(system, "/store", quiet)
	check("to be read", s, err)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	format, after := pebbleFormat(t, system), filesWith(t, system, "/store", "")
	if d := cmp.Diff(before, after); d != "" || format != disk.OldPebbleFormat {
		t.Errorf("it was changed by being read, to format %d (-before +after):\n%s", format, d)
	}
	for at := int64(0); ; at++ {
		failing := clone(system)
		var changes atomic.Int64
		s, err := open(watchedFS{failing, func(op, name string) error {
			if changes.Add(1) > at {
				return syscall.EIO
			}
			return nil
		}}, "/store", longRetention, quiet)
		if err == nil {
			err = s.Close()
		}
		s, again := open(failing, "/store", longRetention, quiet)
		check(fmt.Sprintf("after %d changes", at), s, again)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err == nil && changes.Load() <= at {
			t.Logf("%d changes", at)
			break
		}
	}
	s, err = open(system, "/store", longRetention, quiet)
	check("to be written", s, err)
	appendNext(s, 300)
	want, _ = contentsOf(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := pebbleFormat(t, system); got != disk.PebbleFormat {
		t.Errorf("it has the format %d", got)
	}
	s, err = open(system, "/store", longRetention, quiet)
	check("again", s, err)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// likeMemory are appends of all kinds, to be made in turns of these three.
var likeMemory = [3][]replay.Append{{
	{Log: "t/live", Metadata: []byte("pending"), DueAt: replay.Recover},
	{Log: "t/live", Records: texts("one", "", "\x01\x00"), Metadata: []byte("live"), DueAt: time.Unix(1_800_000_000, 0)},
	{Log: "t/live", Records: texts("\x02\x01a\x01b", "five"), Metadata: []byte("live"),
		DueAt: time.Unix(1_900_000_000, 0)},
	{Log: "t/pending", Metadata: []byte("pending"), DueAt: replay.Recover},
	{Log: "t/lost", Records: texts("one", "two")},
	{Log: "t/ended", Records: texts("one", "two", "three"), Metadata: []byte("ended"), End: true},
	{Log: "t/empty and ended", End: true, DueAt: time.Unix(9, 9)},
}, {
	{Log: "t/lost", Records: texts("three", "four"), Skip: 1 << 20, Metadata: make([]byte, 300)},
	{Log: "t/many", Records: many(1, 130)},
	{Log: "t/trimmed", Records: many(1, 40)},
	{Log: "t/trimmed", Records: many(41, 10), Trim: 25, Snapshot: []byte("to 25")},
	{Log: "t/all trimmed", Records: many(1, 3), Trim: 3, Snapshot: []byte("to 3")},
	{Log: "t/gaps", Records: many(1, 3)},
	{Log: "t/gaps", Records: many(14, 2), Skip: 10},
	{Log: "t/gaps", Records: many(17, 1), Skip: 1, DueAt: replay.Recover},
	{Log: "t/gaps trimmed", Records: many(1, 3)},
	{Log: "t/gaps trimmed", Records: many(14, 2), Skip: 10, Trim: 7, Snapshot: []byte("to 7")},
	{Log: "t/pieces", Records: many(1, 2), Metadata: []byte("running"), DueAt: replay.Recover, Durable: true},
	{Log: "t/pieces", Records: many(3, 1), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(4, 3), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(7, 1), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(8, 2), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/trimmed and ended", Records: many(1, 40), Trim: 11, Snapshot: []byte("to 11"), End: true},
}, {
	{Log: "t/live", Records: texts("six", "seven"), Metadata: []byte("goes on"), DueAt: replay.Recover},
	{Log: "t/live", Metadata: []byte("metadata alone")},
	{Log: "t/live", Records: texts("eight", "nine"), Trim: 2, Snapshot: []byte("to 2")},
	{Log: "t/live", Trim: 6, Snapshot: []byte("to 6, in an entry")},
	{Log: "t/live", Records: texts("ten"), End: true},
	{Log: "t/pending", Records: texts("one"), DueAt: time.Unix(1_800_000_000, 0)},
	{Log: "t/pending", Records: texts("two"), End: true},
	{Log: "t/many", Records: many(131, 4), Trim: 100, Snapshot: []byte("to 100")},
	{Log: "t/many", Records: many(135, 1), Trim: 132, Snapshot: []byte("to 132, in an entry")},
	{Log: "t/all trimmed", Records: many(4, 2)},
	{Log: "t/gaps", Records: many(20, 2), Skip: 2},
	{Log: "t/gaps", Trim: 15, Snapshot: []byte("to 15")},
	{Log: "t/gaps", Trim: 18, Snapshot: []byte("to 18, in a gap")},
	{Log: "t/gaps trimmed", Trim: 15, Snapshot: []byte("to 15, all")},
	{Log: "t/trimmed", End: true},
	{Log: "t/pieces", Records: many(10, 2), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(20, 1), Skip: 8, Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(21, 1), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(22, 1), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(23, 1), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(24, 1), Metadata: []byte("running"), DueAt: replay.Recover, Trim: 5,
		Snapshot: []byte("to 5")},
	{Log: "t/pieces", Records: many(25, 1), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(26, 1), Metadata: []byte("running"), DueAt: replay.Recover},
	{Log: "t/pieces", Records: many(27, 1), Metadata: []byte("done"), Durable: true},
	{Log: "t/new", Records: texts("one")},
}}

func texts(records ...string) (out [][]byte) {
	for _, r := range records {
		out = append(out, []byte(r))
	}
	return out
}

func many(first, n int) (out [][]byte) {
	for i := range n {
		out = append(out, fmt.Appendf(nil, "record %d", first+i))
	}
	return out
}

// longRetention is the retention of a store that drops no logs.
var longRetention = replay.Settings{Retention: 100 * 365 * 24 * time.Hour}

// TestLikeMemory makes appends to a store closed and opened in between. It then has the same as one in memory.
func TestLikeMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		memory := replay.NewMemory(longRetention)
		s := openAt(t, dir, longRetention)
		for _, turn := range likeMemory {
			for i, a := range turn {
				appendAll(t, memory, []replay.Append{a})
				appendAll(t, s, []replay.Append{a})
				if i%3 == 0 {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = openAt(t, dir, longRetention)
				}
				compareStores(t, memory, s)
			}
		}
		// Nothing is left of the ended logs when they are dropped.
		settings := longRetention
		settings.MaxSize = 1
		s.Configure(settings)
		for left := true; left; {
			left = false
			time.Sleep(time.Second) // for the sweeper
			synctest.Wait()
			for _, log := range []string{"t/live", "t/ended", "t/empty and ended", "t/trimmed and ended", "t/trimmed",
				"t/pending"} {
				_, err := s.Head(t.Context(), log)
				left = left || !errors.Is(err, replay.ErrNotFound)
			}
		}
		for key := range keysOf(t, s) {
			for _, log := range []string{"live", "ended", "pending"} {
				if strings.Contains(key, log) {
					t.Errorf("%q is left", key)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// appendAll appends to logs, whatever revisions they have.
func appendAll(t *testing.T, s replay.Store, appends []replay.Append) {
	t.Helper()
	for _, a := range appends {
		h, err := s.Head(t.Context(), a.Log)
		if err != nil && !errors.Is(err, replay.ErrNotFound) {
			t.Fatalf("%s: %v", a.Log, err)
		}
		a.Expect = h.Revision
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatalf("%s at revision %d: %v", a.Log, a.Expect, err)
		}
	}
}

// compareStores wants the same logs in two stores.
func compareStores(t *testing.T, want, got replay.Store) {
	t.Helper()
	same := cmp.Options{cmpopts.EquateEmpty(),
		cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Ended" },
			cmp.Comparer(func(a, b time.Time) bool { return a.IsZero() == b.IsZero() }))}
	type log struct {
		Head     replay.Head
		Snapshot []byte
		Records  string
		Followed string
	}
	read := func(s replay.Store) (logs []replay.Entry, due []replay.DueLog, all map[string]log) {
		all = make(map[string]log)
		for entry, err := range s.List(t.Context(), "", "") {
			if err != nil {
				t.Fatal(err)
			}
			logs = append(logs, entry)
			var l log
			var records, followed []replay.Record
			if l.Head, l.Snapshot, records, err = s.Load(t.Context(), entry.Log); err != nil {
				t.Fatalf("%s: %v", entry.Log, err)
			}
			if l.Head.First <= l.Head.Last {
				for r, err := range replay.Follow(t.Context(), s, entry.Log, l.Head.First-1, nil) {
					if err != nil {
						t.Fatalf("%s: %v", entry.Log, err)
					}
					followed = append(followed, replay.Record{Seq: r.Seq, Data: bytes.Clone(r.Data)})
					if r.Seq == l.Head.Last {
						break
					}
				}
			}
			l.Records, l.Followed = textOf(records), textOf(followed)
			all[entry.Log] = l
		}
		for w, err := range s.Due(t.Context(), 't', replay.Recover, replay.EndOfTime) {
			if err != nil {
				t.Fatal(err)
			}
			due = append(due, w)
		}
		return logs, due, all
	}
	logs, due, all := read(want)
	gotLogs, gotDue, gotAll := read(got)
	if d := cmp.Diff(logs, gotLogs, same); d != "" {
		t.Errorf("List (-want +got):\n%s", d)
	}
	if d := cmp.Diff(due, gotDue, same); d != "" {
		t.Errorf("Due (-want +got):\n%s", d)
	}
	if d := cmp.Diff(all, gotAll, same); d != "" {
		t.Errorf("Load and Follow (-want +got):\n%s", d)
	}
}

// TestClaimAfterFlusher opens a store after a first opening that died with a segment of the journal begun and nothing
// else: the number of the segment is then in the tables before the format is.
func TestClaimAfterFlusher(t *testing.T) {
	system := crashableDisk()
	db, err := pebble.Open("/store", &pebble.Options{FS: system, FormatMajorVersion: disk.PebbleFormat,
		DisableWAL: true, Logger: logger{quiet}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set(flushedKey, []byte{1}, pebble.NoSync), db.Flush(), db.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := open(system, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
