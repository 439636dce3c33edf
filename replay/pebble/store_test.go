// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
)

// opened is a store and its place.
type opened struct {
	*Store
	dir string
}

// smallDir is the disk of the system with a small size, so that a store writes, reads and maps real files, but no
// 24 MiB of zeros and 4 MiB of intents each time it is opened.
type smallDir struct{ vfs.FS }

func (fs smallDir) Unwrap() vfs.FS { return fs.FS }

func (smallDir) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 64 << 20, TotalBytes: 64 << 20}, nil
}

// openAt opens a store in an absolute directory.
func openAt(t *testing.T, dir string, s replay.Settings) opened {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	st, err := Open(dir, s, log)
	if err != nil {
		t.Fatal(err)
	}
	return opened{st, dir}
}

func TestPebble(t *testing.T) {
	replaytest.Run(t, func(t *testing.T, s replay.Settings) replay.Store {
		return openAt(t, t.TempDir(), s)
	}, replaytest.Options{
		Bubble: true,
		Reopen: func(t *testing.T, st replay.Store, s replay.Settings) replay.Store {
			t.Helper()
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			return openAt(t, st.(opened).dir, s)
		},
		Break: func(t *testing.T, s replay.Settings) (replay.Store, func(bool)) {
			t.Helper()
			var broken atomic.Bool
			disk := smallDisk()
			setBoot(t, disk, "one") // so intents are taken
			st, err := open(watchedFS{disk, func(op, name string) error {
				if broken.Load() {
					return syscall.EROFS
				}
				return nil
			}}, "/store", s, quiet)
			if err != nil {
				t.Fatal(err)
			}
			return st, broken.Store
		},
	})
}

func BenchmarkPebble(b *testing.B) {
	replaytest.Benchmark(b, func(b *testing.B, s replay.Settings) replay.Store {
		st, err := Open(b.TempDir(), s, nil)
		if err != nil {
			b.Fatal(err)
		}
		return st
	})
}
