// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestBackup copies a store while logs are appended to. Everything acknowledged before is in the copy, and each log is
// as it was at some time.
func TestBackup(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "store"), replay.Settings{})
	const logs = 8
	var acknowledged [logs]atomic.Int64 // records of each log
	stop := make(chan struct{})
	var begun, writers sync.WaitGroup
	begun.Add(logs)
	for i := range logs {
		writers.Go(func() {
			for n := uint64(0); ; n++ {
				a := replay.Append{Log: fmt.Sprint("t", i), Expect: n, Records: [][]byte{fmt.Append(nil, n+1)},
					Metadata: []byte("{}"), DueAt: replay.Recover, Durable: n%8 == 0}
				if err := s.Append(t.Context(), a); err != nil {
					t.Error(err)
					return
				}
				acknowledged[i].Store(int64(n + 1))
				if n == 100 {
					begun.Done()
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	begun.Wait() // there is something to copy, of each log
	intent := replay.Append{Log: "tintent", Metadata: []byte("begun"), DueAt: replay.Recover, Intent: true}
	if err := s.Append(t.Context(), intent); err != nil {
		t.Fatal(err)
	}
	ended := replay.Append{Log: "tended", Records: [][]byte{[]byte("x")}, Metadata: []byte("e"), End: true, Durable: true}
	if err := s.Append(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("large"), maxInline)
	if err := s.Append(t.Context(), replay.Append{Log: "tlarge", Records: [][]byte{large}, Durable: true}); err != nil {
		t.Fatal(err)
	}
	var before [logs]int64
	for i := range before {
		before[i] = acknowledged[i].Load()
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if err := s.Backup(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	close(stop)
	writers.Wait()
	if err := s.Backup(t.Context(), dir); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second backup to the same directory: %v", err)
	}
	if err := s.Backup(t.Context(), filepath.Join(s.dir, "backup")); err == nil {
		t.Error("a backup into the store")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	names, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(names) != 1 {
		t.Errorf("the backup leaves %v: %v", names, err)
	}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v: %v", f.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the backup has the mode %v: %v", info.Mode(), err)
	}
	restored := openAt(t, dir, replay.Settings{})
	defer restored.Close()
	for i := range logs {
		h, _, records, err := restored.Load(t.Context(), fmt.Sprint("t", i))
		if err != nil || h.Last < uint64(before[i]) || h.Lost != maxLost {
			t.Errorf("log %d has %d records, lost %d, and had %d before: %v", i, h.Last, h.Lost, before[i], err)
		}
		for n, r := range records {
			if string(r.Data) != fmt.Sprint(n+1) {
				t.Fatalf("record %d of log %d is %q", n+1, i, r.Data)
			}
		}
	}
	if h, err := restored.Head(t.Context(), "tintent"); err != nil || string(h.Metadata) != "begun" {
		t.Errorf("the intent is %+v: %v", h, err)
	}
	if h, err := restored.Head(t.Context(), "tended"); err != nil || h.Ended.IsZero() {
		t.Errorf("the log that has ended is %+v: %v", h, err)
	}
	if _, _, records, err := restored.Load(t.Context(), "tlarge"); err != nil || !bytes.Equal(records[0].Data, large) {
		t.Errorf("the large record is not there as it was: %v", err)
	}
	due := 0
	for d, err := range restored.Due(t.Context(), 't', replay.Recover, time.Now()) {
		if err != nil || !d.At.Equal(replay.Recover) {
			t.Error(d, err)
		}
		due++
	}
	if due != logs+1 {
		t.Errorf("%d logs are due", due)
	}
}

// TestBackupElsewhereFails: an unwritable directory fails the backup, and not the store.
func TestBackupElsewhereFails(t *testing.T) {
	disk := smallDisk()
	failing := watchedFS{disk, func(op, name string) error {
		if filepath.Dir(name) == "/elsewhere" || name == "/elsewhere" {
			return errors.New("no room")
		}
		return nil
	}}
	s, err := open(failing, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(t.Context(), replay.Append{Log: "t1", Records: [][]byte{[]byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.checkpoint(t.Context(), "/elsewhere"); err == nil {
		t.Error("a checkpoint in a directory that cannot be written")
	}
	if err := s.Writable(); err != nil {
		t.Errorf("after it, the store cannot be written: %v", err)
	}
	if err := s.Append(t.Context(), replay.Append{Log: "t2", Durable: true}); err != nil {
		t.Error(err)
	}
}
