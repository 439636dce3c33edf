// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// TestExamine examines directories, and the one of an open store. Nothing is made.
func TestExamine(t *testing.T) {
	dir := t.TempDir()
	file, full, open := filepath.Join(dir, "file"), filepath.Join(dir, "full"), filepath.Join(dir, "open")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(full, 0o700), os.WriteFile(filepath.Join(full, "mine"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(open, replay.Settings{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, want := range map[string]string{
		dir + "/new/store": "", open: "", t.TempDir(): "",
		file: "is a file", file + "/store": "correct the path", full: "is not a store",
	} {
		err := disk.Examine(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if _, err := os.Stat(dir + "/new"); err == nil {
		t.Error("a directory was made")
	}
}
