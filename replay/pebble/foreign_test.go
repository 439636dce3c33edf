// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// TestForeign opens directories other than stores.
func TestForeign(t *testing.T) {
	write := func(t *testing.T, name, content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	database := func(t *testing.T, dir string, version pebble.FormatMajorVersion, key, value string) {
		t.Helper()
		db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: version, Logger: logger{quiet}})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Set([]byte(key), []byte(value), pebble.Sync), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	used := func(t *testing.T, dir string) {
		t.Helper()
		s := openAt(t, dir, replay.Settings{})
		if err := s.Append(t.Context(), replay.Append{Log: "a", Records: [][]byte{[]byte("x")}}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.committed().Flush(), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		want    string // in the error; empty for none
	}{
		"new": {func(t *testing.T, dir string) {}, ""},
		"new volume": {func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"used": {used, ""},
		"file": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "notes.txt"), "mine") },
			`is not a store, but holds files, such as "notes.txt"`},
		"no directory": {func(t *testing.T, dir string) {
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "")
		}, "not a directory"},
		"another database": {func(t *testing.T, dir string) { database(t, dir, disk.PebbleFormat, "k", "v") },
			"is a database of something else"},
		"another database, older": {func(t *testing.T, dir string) { database(t, dir, pebble.FormatMinSupported, "k", "v") },
			"is a database of something else"},
		"missing large records": {func(t *testing.T, dir string) {
			used(t, dir)
			s, err := Open(dir, replay.Settings{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			appendRecords(t, s, "large", true, strings.Repeat("x", 2*maxInline))
			if err := errors.Join(s.committed().Flush(), s.Close()); err != nil {
				t.Fatal(err)
			}
			removeFiles(t, dir, "*.blob")
		}, "cannot be opened"},
		"another format": {func(t *testing.T, dir string) {
			database(t, dir, disk.PebbleFormat, string(formatKey), "aip-gateway replay 1")
		},
			`has the format "aip-gateway replay 1", and this version knows only "aip-gateway store 1"`},
		"damaged manifest": {func(t *testing.T, dir string) {
			used(t, dir)
			files, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
			for _, f := range files {
				write(t, f, "this is no manifest, but it is long enough to be read as one, for a while at least")
			}
		}, "cannot be opened"},
		"missing tables": {func(t *testing.T, dir string) {
			used(t, dir)
			removeFiles(t, dir, "*.sst")
		}, "cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			test.prepare(t, dir)
			for range 2 { // nor is it changed by having been looked at
				s, err := Open(dir, replay.Settings{}, nil)
				if err == nil {
					err = s.Close()
				}
				switch {
				case test.want == "" && err != nil:
					t.Errorf("error %v", err)
				case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("error %v, want one with %q", err, test.want)
				}
			}
		})
	}
}

// removeFiles removes the files of a directory that match a pattern: one at least.
func removeFiles(t *testing.T, dir, pattern string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is valid
	if len(files) == 0 {
		t.Fatalf("there are no files %s", pattern)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}
