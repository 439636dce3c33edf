// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// sizeOfDir returns the bytes of all files in a directory.
func sizeOfDir(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDiskShrinks bounds what logs that have ended may take, and continues as before.
func TestDiskShrinks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := openAt(t, dir, replay.Settings{Sync: replay.SyncNever})
		rnd := rand.NewChaCha8([32]byte{})
		record := make([]byte, 1<<20)
		write := func(name string, logs int) {
			t.Helper()
			for i := range logs {
				_, _ = rnd.Read(record) // cannot be compressed
				a := replay.Append{Log: fmt.Sprint(name, i), Records: [][]byte{record}, End: true}
				if err := s.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(time.Minute) // for Pebble, which removes files one after the other
			synctest.Wait()
		}
		write("before", 160)
		before := sizeOfDir(t, dir)
		s.Configure(replay.Settings{Sync: replay.SyncNever, MaxSize: 16 << 20})
		after := before
		for round := 0; before-after < 32<<20; round++ { // Pebble frees room as it compacts
			if round == 4 {
				t.Fatalf("the directory has %d bytes, and had %d before", after, before)
			}
			write(fmt.Sprintf("after %d, ", round), 160)
			after = sizeOfDir(t, dir)
			t.Logf("%d bytes, %d before", after, before)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
