// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestFlipsOfTableVersion flips each bit of the version of a table, Pebble believes some of them: the store is opened
// neither to be read nor to be written nor to be repaired, and is reported as damaged.
func TestFlipsOfTableVersion(t *testing.T) {
	_, disk := flipStore(t, false)
	t.Run("new", func(t *testing.T) { flipTableVersion(t, disk) })
	makeOld(t, disk)
	t.Run("old", func(t *testing.T) { flipTableVersion(t, disk) })
}

func flipTableVersion(t *testing.T, disk *vfs.MemFS) {
	for _, file := range filesWith(t, disk, "/store", ".sst") {
		data := contents(t, disk, file)
		for bit := range 32 {
			damaged := clone(disk)
			b := bytes.Clone(data)
			b[len(b)-tableEndLen+bit/8] ^= 1 << (bit % 8)
			create(t, damaged, file, b)
			if s, err := openReadOnly(damaged, "/store", quiet); !errors.Is(err, ErrDamaged) {
				t.Errorf("bit %d, to be read: %v, %v, want ErrDamaged", bit, s, err)
			}
			if s, err := open(damaged, "/store", replay.Settings{}, quiet); !errors.Is(err, ErrDamaged) {
				t.Errorf("bit %d, to be written: %v, %v, want ErrDamaged", bit, s, err)
			}
			done, err := repair(damaged, "/store", quiet)
			if err == nil || !strings.Contains(err.Error(), "cannot be repaired") {
				t.Errorf("bit %d, to be repaired: %v, %v", bit, done, err)
			}
		}
	}
}

// TestFlipsOfLargeRecords flips one bit of a file with large records: none of them is read as another.
func TestFlipsOfLargeRecords(t *testing.T) {
	system := crashableDisk()
	system.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 16 << 20, TotalBytes: 16 << 20})
	s, err := open(system, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	rnd, want := rand.NewChaCha8([32]byte{}), make(map[string][]byte)
	for i := range flipLogs {
		log, record := fmt.Sprint("t", i), make([]byte, 2*maxInline)
		_, _ = rnd.Read(record[:maxInline])
		want[log] = record
		if err := s.Append(t.Context(), replay.Append{Log: log, Records: [][]byte{record}}); err != nil {
			t.Fatal(err)
		}
	}
	endOfSegment(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := filesWith(t, system, "/store", ".blob")
	if len(files) == 0 {
		t.Fatal("there is no file of large records")
	}
	for _, file := range files {
		n, unread := used(t, system, file), 0
		for at := range n {
			if at%499 != 0 && at < n-60 {
				continue
			}
			damaged := clone(system)
			flip(t, damaged, file, at)
			s, err := openReadOnly(damaged, "/store", quiet)
			if err != nil {
				unread++
				continue
			}
			for log, record := range want {
				_, _, records, err := s.Load(t.Context(), log)
				switch {
				case err != nil && !errors.Is(err, replay.ErrNotFound):
					unread++
				case err != nil || len(records) != 1 || !bytes.Equal(records[0].Data, record):
					t.Errorf("%s, byte %d of %d: log %s has %d records, %v", file, at, n, log, len(records), err)
				}
			}
			_ = s.Close() // damage may be an error of it
		}
		if t.Logf("%s: %d bytes, %d logs not read", file, n, unread); unread == 0 {
			t.Error("no damage was noticed")
		}
		for at := n - 38; at < n; at++ { // while it is open, too
			damaged := clone(system)
			s, err := openReadOnly(damaged, "/store", quiet)
			if err != nil {
				t.Fatal(err)
			}
			flip(t, damaged, file, at)
			for log := range want {
				if _, _, _, err := s.Load(t.Context(), log); err == nil {
					t.Errorf("%s, byte %d of %d, flipped while it is open: log %s is read", file, at, n, log)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
