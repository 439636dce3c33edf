// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/replay"
)

// withPebbleLog returns a disk after a loss of power, with a store whose write-ahead log is Pebble's, as older versions
// had it. It has what is in the journal of another store.
func withPebbleLog(t *testing.T, disk vfs.FS) *vfs.MemFS {
	t.Helper()
	former := crashableDisk()
	db, err := pebble.Open("/store", &pebble.Options{
		FS: former, FormatMajorVersion: formatOfPebble, Logger: logger{quiet},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range filesWith(t, disk, "/store", segmentExt) {
		for _, payload := range batchesIn(t, disk, path) {
			b := db.NewBatch()
			if err := errors.Join(b.SetRepr(payload), b.Commit(pebble.Sync), b.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	crashed := former.CrashClone(vfs.CrashCloneCfg{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return crashed
}

// TestRepair opens stores of older versions whose write-ahead log does not end as it should.
func TestRepair(t *testing.T) {
	cut := []string{"WARN replay: the write-ahead log ended within a record, and has been cut there; nothing " +
		"acknowledged is lost"}
	for name, test := range map[string]struct {
		spoil func(t *testing.T, system vfs.FS, logs []string) // paths of the files of the write-ahead log
		want  uint64                                           // records of the log; 0 if the store is not opened
		lines []string
	}{
		"as after a crash": {func(t *testing.T, system vfs.FS, logs []string) {}, 3, nil},
		"the last one is torn": {func(t *testing.T, system vfs.FS, logs []string) {
			truncate(t, system, logs[len(logs)-1], 100)
		}, 2, nil},
		"torn, and then an empty one": {func(t *testing.T, system vfs.FS, logs []string) {
			truncate(t, system, logs[len(logs)-1], 100)
			create(t, system, "/store/000900.log", nil)
		}, 2, cut},
		"torn, and then two without a record": {func(t *testing.T, system vfs.FS, logs []string) {
			truncate(t, system, logs[len(logs)-1], 100)
			create(t, system, "/store/000900.log", contents(t, system, logs[len(logs)-1])[:90])
			create(t, system, "/store/000901.log", nil)
		}, 2, cut},
		"torn, and then one with records": {func(t *testing.T, system vfs.FS, logs []string) {
			truncate(t, system, logs[0], 100)
		}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			disk := crashableDisk()
			disk.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 64 << 20, TotalBytes: 64 << 20}) // one segment takes all
			s, err := open(disk, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			for i, size := range []int{100_000, 300_000, 1000} { // the second one does not fit into the first file
				a := replay.Append{Log: "a", Expect: uint64(i), Records: [][]byte{make([]byte, size)}, Durable: true}
				if err := s.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			crashed := withPebbleLog(t, disk)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			test.spoil(t, crashed, filesWith(t, crashed, "/store", ".log"))
			before := filesWith(t, crashed, "/store", ".log")

			var logged lines
			s, err = open(crashed, "/store", replay.Settings{}, slog.New(&logged))
			if test.want == 0 {
				if err == nil || !strings.Contains(err.Error(), "the store is damaged") {
					t.Errorf("error %v, want one that says that it is damaged", err)
				}
				if d := cmp.Diff(before, filesWith(t, crashed, "/store", ".log")); d != "" {
					t.Errorf("files (-before +after):\n%s", d)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, _, records, err := s.Load(t.Context(), "a"); err != nil || uint64(len(records)) != test.want {
				t.Errorf("%d records, %v, want %d", len(records), err, test.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			seen := slices.DeleteFunc(logged.get(), func(line string) bool {
				return strings.Contains(line,
					"leave out numbers")
			})
			if d := cmp.Diff(test.lines, seen, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("log (-want +got):\n%s", d)
			}
			names, err := crashed.List("/store")
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, ".aside") }); i >= 0 {
				t.Errorf("%s is left", names[i])
			}
		})
	}
}

// filesWith returns the paths of the files in a directory that have an extension, oldest first.
func filesWith(t *testing.T, system vfs.FS, dir, ext string) (paths []string) {
	t.Helper()
	names, err := system.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ext) {
			paths = append(paths, system.PathJoin(dir, name))
		}
	}
	slices.Sort(paths)
	return paths
}

func contents(t *testing.T, system vfs.FS, name string) []byte {
	t.Helper()
	f, err := system.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func create(t *testing.T, system vfs.FS, name string, content []byte) {
	t.Helper()
	f, err := system.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// truncate takes some bytes from the end of a file.
func truncate(t *testing.T, system vfs.FS, name string, n int) {
	t.Helper()
	b := contents(t, system, name)
	create(t, system, name, b[:len(b)-n])
}
