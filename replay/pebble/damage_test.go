// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// flipLogs is the number of logs of the stores with damaged files. Each gets flipRecords records, by appends; every
// third one is durable. The batches of log 2 are written in parts of flipPart bytes.
const (
	flipLogs    = 4
	flipRecords = 3
	flipPart    = 64
)

// flipStore makes a store on a disk. If several, its journal has several segments, and the tables have some of them. It
// returns the disk as left by the death of the process, and as left by a close.
func flipStore(t *testing.T, several bool) (killed, closed *vfs.MemFS) {
	t.Helper()
	disk := crashableDisk()
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 16 << 20, TotalBytes: 16 << 20})
	setBoot(t, disk, "one")
	s, err := open(disk, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	part := s.sizes.Part
	for i := range flipLogs {
		log := fmt.Sprint("t", i)
		if i == 2 {
			s.sizes.Part, s.journal.Part = flipPart, flipPart
		} else {
			s.sizes.Part, s.journal.Part = part, part
		}
		for n := range uint64(flipRecords) {
			a := replay.Append{Log: log, Expect: n, Records: [][]byte{fmt.Appendf(nil, "%s %d", log, n+1)},
				Metadata: []byte{byte(n / 4)}, DueAt: replay.Recover, Durable: (i+int(n))%3 == 0,
				Lists: flipLists(n)}
			if err := s.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
		if several && i < flipLogs-1 {
			endOfSegment(t, s)
		}
	}
	killed = clone(disk)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return killed, disk
}

// flipLists are the lists after the append of a number from 0. Some have those before them, and so need no head.
func flipLists(n uint64) []replay.Listing {
	n -= n % 4
	return []replay.Listing{{List: "tasks", At: time.UnixMilli(int64(n + 1)), Label: fmt.Sprint(n)}}
}

// endOfSegment begins the next segment, and waits until the tables have those before.
func endOfSegment(t *testing.T, s *Store) {
	t.Helper()
	if err := s.journal.Rotate(); err != nil {
		t.Fatal(err)
	}
	for number, _ := s.journal.Position(); s.journal.Needed() < number; {
		runtime.Gosched()
	}
}

// flip changes one bit of a file.
func flip(t *testing.T, system vfs.FS, name string, at int) {
	t.Helper()
	b := contents(t, system, name)
	b[at] ^= 1 << (at % 8)
	create(t, system, name, b)
}

// findings is the rest of a damaged store.
type findings struct {
	refused bool // the store was not opened
	broken  int  // unreadable logs
	missing int  // records
	lost    int  // logs with records possibly lost
	cut     int  // logs with durable records possibly lost
}

// survey returns the rest of flipStore's content, or the failure to open the store.
func survey(t *testing.T, s *Store, err error) (f findings) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, ErrDamaged) && !strings.Contains(err.Error(), "cannot be opened") {
			t.Errorf("error %v, want ErrDamaged", err)
		}
		return findings{refused: true}
	}
	defer func() { _ = s.Close() }() // a damaged table is an error of it
	for i := range flipLogs {
		log := fmt.Sprint("t", i)
		h, _, records, err := s.Load(t.Context(), log)
		if err != nil && !errors.Is(err, replay.ErrNotFound) {
			f.broken++
			continue
		}
		for n, r := range records {
			if string(r.Data) != fmt.Sprintf("%s %d", log, n+1) {
				t.Errorf("record %d of %s is %q", n+1, log, r.Data)
			}
		}
		f.missing += flipRecords - len(records)
		if h.Lost > 0 {
			f.lost++
		}
		if h.Cut {
			f.cut++
		}
	}
	return f
}

// tableEndLen is the length of the version and the mark at the end of a table.
const tableEndLen = 4 + 8

// clone copies a disk.
func clone(disk *vfs.MemFS) *vfs.MemFS {
	return crash(disk, vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
}

// used returns the number of bytes of a file without the zeros at its end.
func used(t *testing.T, disk vfs.FS, name string) int {
	t.Helper()
	return len(bytes.TrimRight(contents(t, disk, name), "\x00"))
}

// tableFooter is the size of the end of a table, in bytes; no checksum covers it.
const tableFooter = 53

// TestFlips flips one bit of a file of a store, at each place of the files in turn. The store is not opened, or names
// the unreadable logs, or has everything acknowledged.
func TestFlips(t *testing.T) {
	one, oneClosed := flipStore(t, false)
	several, severalClosed := flipStore(t, true)
	for name, system := range map[string]*vfs.MemFS{
		"killed": one, "closed": oneClosed, "several segments, killed": several, "several segments, closed": severalClosed,
	} {
		t.Run(name, func(t *testing.T) {
			names, err := system.List("/store")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range names {
				if file == disk.ReserveName || file == "LOCK" {
					continue
				}
				file = "/store/" + file
				step, tables := 1, path.Ext(file) == ".sst"
				switch {
				case tables:
					step = 13
				case strings.HasPrefix(path.Base(file), "OPTIONS"):
					step = 101
				case strings.HasPrefix(name, "several") && path.Ext(file) == segment.Ext:
					step = 7
				}
				n, refused := used(t, system, file), 0
				for at := 0; at < n; at += sparse {
					if at%step != 0 && !(tables && at >= n-tableFooter) {
						continue
					}
					damaged := clone(system)
					flip(t, damaged, file, at)
					s, err := openReadOnly(damaged, "/store", quiet)
					f := survey(t, s, err)
					if f.refused {
						refused++
					} else if f.missing > 0 || f.broken > 0 && !tables {
						t.Errorf("%s, byte %d of %d: %+v", file, at, n, f)
					}
				}
				t.Logf("%s: %d bytes, %d refused", file, n, refused)
			}
		})
	}
}

// TestFlipsAfterPowerLoss flips one bit of the journal of a store after its machine has gone down: synced records are
// not lost unnoticed, and the numbers of unsynced ones are left out.
func TestFlipsAfterPowerLoss(t *testing.T) {
	killed, _ := flipStore(t, false)
	setBoot(t, killed, "two")
	file := segmentPath(1)
	data := contents(t, killed, file)
	var synced int64
	for tr := range segment.Trailers(data, 0, 1) {
		synced = max(synced, tr.Synced)
	}
	n := used(t, killed, file)
	if synced == 0 || int(synced) > n {
		t.Fatalf("%d of %d bytes are synced", synced, n)
	}
	for at := 0; at < n; at += sparse {
		damaged := clone(killed)
		flip(t, damaged, file, at)
		s, err := open(damaged, "/store", replay.Settings{}, quiet)
		f := survey(t, s, err)
		if want := at < int(synced); f.refused != want {
			t.Errorf("byte %d of %d, of which %d are synced: %+v", at, n, synced, f)
		}
		if f.missing > 0 && f.lost < flipLogs-1 { // the last one may not be there at all
			t.Errorf("byte %d: %+v", at, f)
		}
	}
}

// TestRepairJournal flips one bit of the journal of a killed store, and repairs it. The hit record is lost, and no
// other.
func TestRepairJournal(t *testing.T) {
	one, _ := flipStore(t, false)
	several, _ := flipStore(t, true)
	for name, disk := range map[string]*vfs.MemFS{"one segment": one, "several": several} {
		t.Run(name, func(t *testing.T) {
			for _, file := range filesWith(t, disk, "/store", segment.Ext) {
				for at := 0; at < used(t, disk, file); at += 7 * sparse {
					damaged := clone(disk)
					flip(t, damaged, file, at)
					s, err := open(damaged, "/store", replay.Settings{}, quiet)
					if err == nil { // it was the last trailer, or an unneeded segment
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
						continue
					}
					done, err := repair(damaged, "/store", quiet)
					if err != nil || len(done.Files) != 1 || done.Bytes == 0 || len(done.Logs) > 1 {
						t.Fatalf("%s, byte %d: repaired %+v, %v", file, at, done, err)
					}
					s, err = open(damaged, "/store", replay.Settings{}, quiet)
					if err != nil {
						t.Fatalf("%s, byte %d: %v", file, at, err)
					}
					checkRepaired(t, s, done)
					if again, err := repair(damaged, "/store", quiet); err != nil || len(again.Files) > 0 {
						t.Fatalf("%s, byte %d: repaired again: %+v, %v", file, at, again, err)
					}
				}
			}
		})
	}
}

// checkRepaired wants a repaired store to have everything it had, but for one record, and appends to all logs.
func checkRepaired(t *testing.T, s *Store, done *Repaired) {
	t.Helper()
	due := make(map[string]bool)
	for d, err := range s.Due(t.Context(), 't', replay.Recover, replay.EndOfTime) {
		if err != nil {
			t.Fatal(err)
		}
		due[d.Log] = true
	}
	listed := make(map[string]replay.ListedLog)
	for l, err := range s.Listed(t.Context(), "tasks", replay.ListedLog{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := listed[l.Log]; twice {
			t.Errorf("%s is listed twice", l.Log)
		}
		listed[l.Log] = l
	}
	missing := 0
	for i := range flipLogs {
		log := fmt.Sprint("t", i)
		h, err := s.Head(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		broken := slices.Contains(done.Logs, log)
		if broken == h.Ended.IsZero() || broken == due[log] || broken == h.Cut || broken == (h.Lost > 0) {
			t.Errorf("%s, broken %v, due %v: %+v", log, broken, due[log], h)
		}
		_, _, records, err := s.Load(t.Context(), log)
		var want replay.ListedLog
		if !broken {
			l := flipLists(uint64(len(records) - 1))[0]
			want = replay.ListedLog{Log: log, At: l.At, Label: l.Label}
		}
		if diff := cmp.Diff(want, listed[log]); diff != "" {
			t.Errorf("%s, broken %v, is listed as (-want +got):\n%s", log, broken, diff)
		}
		if broken {
			if !errors.Is(err, errDamaged) {
				t.Errorf("Load of %s: %v, want errDamaged", log, err)
			}
			continue
		}
		missing += flipRecords - len(records)
		appendRecords(t, s, log, true, "x")
		if h, err = s.Head(t.Context(), log); err != nil || h.Lost > 0 || h.Cut || h.Last <= flipRecords+1 {
			t.Errorf("%s afterwards: %+v, %v", log, h, err)
		}
	}
	if missing+len(done.Logs) > 1 {
		t.Errorf("%d records are missing, and %d logs", missing, len(done.Logs))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestStaleIntent damages all appends to a log begun by an intent. The intent is still in its file, but not taken up:
// its log went on.
func TestStaleIntent(t *testing.T) {
	disk := crashableDisk()
	setBoot(t, disk, "one")
	s, err := open(disk, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), replay.Append{Log: "i", DueAt: replay.Recover, Intent: true}); err != nil {
		t.Fatal(err)
	}
	var places []int
	for _, record := range []string{"i1", "i2"} {
		places = append(places, used(t, disk, segmentPath(1))+segment.HeaderLen)
		appendRecords(t, s, "i", false, record)
	}
	killed := clone(disk)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, at := range places {
		flip(t, killed, segmentPath(1), at)
	}
	if s, err := open(killed, "/store", replay.Settings{}, quiet); !errors.Is(err, ErrDamaged) {
		t.Fatalf("%v, %v, want ErrDamaged", s, err)
	}
	if _, err := repair(killed, "/store", quiet); err != nil {
		t.Fatal(err)
	}
	if s, err = open(killed, "/store", replay.Settings{}, quiet); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Head(t.Context(), "i"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("Head: %v, want ErrNotFound", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFlipsOfBackup flips one bit of the manifest of a backup, at each place in turn: tables are not lost unnoticed,
// although a backup has no journal with a need for them.
func TestFlipsOfBackup(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "store"), replay.Settings{})
	for i := range flipLogs {
		appendRecords(t, s.Store, fmt.Sprint("t", i), true, "x")
	}
	copied := filepath.Join(dir, "copy")
	if err := errors.Join(s.Backup(t.Context(), copied), s.Close()); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(copied, "MANIFEST-*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("manifests %q, %v", found, err)
	}
	manifest := slices.Max(found) // in use
	whole := contents(t, vfs.Default, manifest)
	refused := 0
	for at := range whole {
		flip(t, vfs.Default, manifest, at)
		s, err := OpenReadOnly(copied, quiet)
		create(t, vfs.Default, manifest, whole)
		if err != nil {
			refused++
			continue
		}
		for i := range flipLogs {
			if h, err := s.Head(t.Context(), fmt.Sprint("t", i)); err != nil || h.Last != 1 {
				t.Errorf("byte %d of %d: %+v, %v", at, len(whole), h, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d of %d refused", refused, len(whole))
	r, err := OpenReadOnly(copied, quiet)
	if err != nil {
		t.Fatalf("without damage: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
