// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// smallDisk returns a disk in memory of a small size, so memtables are small, and files are many.
func smallDisk() *vfs.MemFS {
	system := vfs.NewMem()
	system.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 64 << 20, TotalBytes: 64 << 20})
	return system
}

// crashableDisk is smallDisk for a disk able to lose unsynced bytes.
func crashableDisk() *vfs.MemFS {
	system := vfs.NewCrashableMem()
	system.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 16 << 20, TotalBytes: 16 << 20})
	return system
}

// diskOf returns a crashable disk of a size, in bytes, on a machine that was started once.
func diskOf(t *testing.T, size uint64) *vfs.MemFS {
	t.Helper()
	disk := vfs.NewCrashableMem()
	disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: size, TotalBytes: size})
	setBoot(t, disk, "one")
	return disk
}

// crash returns a disk of the same size as left by a crash. Without its size, a store has the sizes for a large disk:
// with each opening it makes, reads and copies a file of intents of 10 MiB.
func crash(system *vfs.MemFS, left vfs.CrashCloneCfg) *vfs.MemFS {
	crashed := system.CrashClone(left)
	if usage, err := system.GetDiskUsage("/"); err == nil {
		crashed.TestingSetDiskUsage(usage)
	}
	return crashed
}

// TestTornLog has a write of the journal fail while another commit is about to begin the next segment.
func TestTornLog(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		system := vfs.NewMem()
		var broken atomic.Bool
		mend := make(chan struct{})
		s, err := open(watchedFS{system, ofLog(func(op string) error {
			if op == "write" && broken.Load() {
				<-mend
				return syscall.ENOSPC
			}
			return nil
		})}, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(5) {
			if err := s.Append(t.Context(), replay.Append{Log: "a", Expect: i, Records: [][]byte{make([]byte, 3000)},
				Durable: true}); err != nil {
				t.Fatal(err)
			}
		}
		broken.Store(true)
		var wg sync.WaitGroup
		for _, a := range []replay.Append{
			{Log: "b", Records: [][]byte{make([]byte, 3000)}, Durable: true},
			{Log: "c", Records: [][]byte{make([]byte, 1<<20)}, Durable: true}, // takes another memtable, and file
		} {
			wg.Go(func() {
				if err := s.Append(context.Background(), a); !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("Append to %s: %v, want the disk's error", a.Log, err)
				}
			})
			synctest.Wait()
		}
		close(mend)
		wg.Wait()
		if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close: %v, want the disk's error", err)
		}
		s, err = open(system, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		checkZeros(t, s, "a", 5)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFaults has any change of the disk fail, from some time on and for some time, during many writes. Everything
// acknowledged is there while the disk fails, when it works again, and after the process.
func TestFaults(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range uint64(9 / min(3, sparse)) { // each cause
		bubble.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, round))
			system := smallDisk()
			var left atomic.Int64 // changes until they fail
			left.Store(math.MaxInt64)
			cause := []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS}[round%3]
			s, err := open(watchedFS{system, func(op, name string) error {
				if left.Add(-1) < 0 {
					return cause
				}
				return nil
			}}, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			var acked [6]uint64
			for range 4 {
				reopened := s.Reopened()
				left.Store(rnd.Int64N(300))
				var wg sync.WaitGroup
				for w := range acked {
					rnd := rand.New(rand.NewPCG(rnd.Uint64(), 0))
					wg.Go(func() {
						for {
							record := content(logOf(w), acked[w]+1)
							if rnd.IntN(16) == 0 {
								record = append(record, make([]byte, rnd.IntN(3<<20))...)
							}
							err := s.Append(context.Background(), replay.Append{
								Log: logOf(w), Expect: acked[w], Records: [][]byte{record}, Durable: rnd.IntN(4) == 0,
							})
							if err != nil {
								if !errors.Is(err, replay.ErrUnavailable) || !errors.Is(err, cause) {
									t.Errorf("Append: %v, want the disk's error", err)
								}
								return
							}
							acked[w]++
						}
					})
				}
				wg.Wait()
				synctest.Wait() // for the database to be opened for reading
				checkContent(t, s, acked[:])
				time.Sleep(time.Duration(rnd.Int64N(int64(time.Minute))))
				left.Store(math.MaxInt64)
				<-reopened
				checkContent(t, s, acked[:])
				for w := range acked { // refused ones may be there
					if h, err := s.Head(t.Context(), logOf(w)); err == nil {
						acked[w] = h.Last
					}
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if s, err = open(system, "/store", replay.Settings{}, quiet); err != nil {
				t.Fatal(err)
			}
			checkContent(t, s, acked[:])
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// TestFaultAnywhere has the disk fail for good at each of its changes in turn, through several segments of the journal.
// Everything acknowledged is there in a new process, and after a loss of power, everything durable.
func TestFaultAnywhere(t *testing.T) {
	for at := int64(0); ; at += int64(sparse) {
		disk := crashableDisk()
		disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 16 << 20, TotalBytes: 16 << 20})
		setBoot(t, disk, "one")
		var changes atomic.Int64
		var acked, durable uint64
		s, err := open(watchedFS{disk, func(op, name string) error {
			if changes.Add(1) > at {
				return syscall.EIO
			}
			return nil
		}}, "/store", replay.Settings{}, quiet)
		for ; err == nil && acked < 12; acked++ {
			record := append(content("a", acked+1), make([]byte, 50_000)...)
			a := replay.Append{Log: "a", Expect: acked, Records: [][]byte{record}, Durable: acked%3 == 0}
			if err = s.Append(t.Context(), a); err != nil {
				break
			}
			if a.Durable {
				durable = acked + 1
			}
		}
		lost := crash(disk, vfs.CrashCloneCfg{})
		if s != nil {
			_ = s.Close() // the disk's error
		}
		for found, want := range map[*vfs.MemFS]uint64{disk: acked, lost: durable} {
			again, err := open(found, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatalf("after %d changes: %v", at, err)
			}
			checkContent(t, again, []uint64{want})
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err == nil && changes.Load() <= at {
			break // nothing has failed
		}
	}
}

func logOf(writer int) string { return string('a' + rune(writer)) }

// checkContent wants at least so many records in the logs of the writers, each as made by its writer.
func checkContent(t *testing.T, s *Store, acked []uint64) {
	t.Helper()
	for w, want := range acked {
		h, _, records, err := s.Load(t.Context(), logOf(w))
		if errors.Is(err, replay.ErrNotFound) && want == 0 {
			continue
		}
		if err != nil || h.Last < want || uint64(len(records)) != h.Last {
			t.Fatalf("log %s: %d of %d records, head %+v, %v", logOf(w), len(records), want, h, err)
		}
		for _, r := range records {
			if !bytes.HasPrefix(r.Data, content(logOf(w), r.Seq)) {
				t.Fatalf("log %s: record %d is another", logOf(w), r.Seq)
			}
		}
	}
}

// TestFullDisk fills the disk as it is for the parts of a database beside the journal. Pebble itself would try
// the same again without end, hold up the writers, or end the process.
func TestFullDisk(t *testing.T) {
	for _, part := range []string{"*.sst", "*.blob", "MANIFEST-*"} {
		t.Run(part, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var full atomic.Bool
				var refused atomic.Int64
				var logged lines
				s, err := open(watchedFS{smallDisk(), func(op, name string) error {
					base := path.Base(name)
					hit, _ := path.Match(part, base)
					if full.Load() && (hit || base == probeName) && (op == "create" || op == "write") {
						if hit {
							refused.Add(1)
						}
						return syscall.ENOSPC
					}
					return nil
				}}, "/store", replay.Settings{}, slog.New(&logged))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				reopened := s.Reopened()
				full.Store(true)
				last := uint64(0)
				for ; last < 1000; last++ {
					err := s.Append(t.Context(), replay.Append{Log: "a", Expect: last, Records: [][]byte{make([]byte, 100_000)},
						Durable: true})
					if err != nil {
						if !errors.Is(err, replay.ErrUnavailable) || !errors.Is(err, syscall.ENOSPC) {
							t.Errorf("Append: %v, want the disk's error", err)
						}
						break
					}
				}
				synctest.Wait()
				checkZeros(t, s, "a", last)
				time.Sleep(time.Hour)
				if got := refused.Load(); got < 1 || got > 3 {
					t.Errorf("the disk refused %d times, want a few", got)
				}
				full.Store(false)
				<-reopened
				checkZeros(t, s, "a", last)
				if err := s.Append(t.Context(), replay.Append{Log: "b", Durable: true}); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				want := []string{
					"ERROR replay: the store cannot be written; it tries again by itself",
					"WARN replay: the store can be written again",
				}
				if d := cmp.Diff(want, logged.get()); d != "" {
					t.Errorf("log (-want +got):\n%s", d)
				}
			})
		})
	}
}

// TestOrphanTables has the disk take large records and small files, but no tables: each try to open the database fails.
// The leftovers of the tries do not take the disk.
func TestOrphanTables(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		system := smallDisk()
		var full atomic.Bool
		var refused atomic.Int64
		s, err := open(watchedFS{system, func(op, name string) error {
			if full.Load() && path.Ext(name) == ".sst" && op == "write" {
				refused.Add(1)
				return syscall.ENOSPC
			}
			return nil
		}}, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		reopened := s.Reopened()
		last := uint64(0)
		for ; last < 1000; last++ {
			full.Store(last >= 30)
			a := replay.Append{Log: "a", Expect: last, Records: [][]byte{make([]byte, 100_000)}, Durable: true}
			if err := s.Append(t.Context(), a); err != nil {
				break
			}
			synctest.Wait()
		}
		time.Sleep(5 * time.Minute)
		if refused.Load() < 5 {
			t.Errorf("the disk refused %d times, want more tries", refused.Load())
		}
		names, err := system.List("/store")
		if err != nil {
			t.Fatal(err)
		}
		tables, err := s.tables()
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for name := range tables {
			if _, err := system.Stat("/store/" + name); err == nil { // not in memory
				want++
			}
		}
		got := 0
		for _, name := range names {
			if disk.IsTable(name) {
				got++
			}
		}
		if want == 0 || got != want {
			t.Errorf("%d tables are on the disk, %d in the database", got, want)
		}
		full.Store(false)
		<-reopened
		checkZeros(t, s, "a", last)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := s.orphans.Len(); n > 0 {
			t.Errorf("%d tables count as orphans after a clean end", n)
		}
	})
}

// lines is a slog.Handler keeping the visible part: level and message of each line above debug.
type lines struct {
	mu   sync.Mutex
	seen []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level > slog.LevelDebug }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, r.Level.String()+" "+r.Message)
	return nil
}

func (l *lines) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}
