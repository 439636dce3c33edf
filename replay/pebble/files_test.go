// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// filesWith returns the paths of the files in a directory with an extension, oldest first.
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
