// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// TestSegmentLosesItsPages cuts the file of the segment that is being written. What is appended next is written by a
// system call.
func TestSegmentLosesItsPages(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir, replay.Settings{Sync: replay.SyncNever})
	appendRecords(t, s.Store, "a", false, "one")
	segments, err := filepath.Glob(filepath.Join(dir, "*"+segment.Ext))
	if err != nil || len(segments) != 1 {
		t.Fatalf("%v, %v", segments, err)
	}
	if err := os.Truncate(segments[0], 0); err != nil {
		t.Fatal(err)
	}
	_, before := s.journal.Position()
	appendRecords(t, s.Store, "a", false, "two")
	written, err := os.ReadFile(segments[0])
	if err != nil || int64(len(written)) < before || !bytes.Contains(written[before:], []byte("two")) {
		t.Errorf("the file has %d bytes, %v, and no record at %d", len(written), err, before)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
