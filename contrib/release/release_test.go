// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// TestArchive: the same files make the same archive, whoever has written them, and when.
func TestArchive(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	var made [2]bytes.Buffer
	for i := range made {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "docs"), 0o700); err != nil {
			t.Fatal(err)
		}
		program, text := filepath.Join(dir, "caddy"), filepath.Join(dir, "docs", "LICENSE")
		for _, name := range []string{program, text} {
			if err := os.WriteFile(name, []byte("content of "+filepath.Base(name)), 0o600+os.FileMode(i)<<3); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(name, time.Time{}, at.Add(time.Duration(i)*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if err := archive(at, program, dir, "docs/LICENSE")(&made[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0].Bytes(), made[1].Bytes()) {
		t.Error("two archives of the same files differ")
	}
}

// TestNothingIsReplaced: a file of a release that is there already may have been published.
func TestNothingIsReplaced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "SHA256SUMS")
	if err := os.WriteFile(name, []byte("published"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := create(name, checksums("", nil)); err == nil {
		t.Error("a file was replaced")
	}
	if content, err := os.ReadFile(name); err != nil || string(content) != "published" {
		t.Errorf("the file has %q: %v", content, err)
	}
}

func TestLibrary(t *testing.T) {
	sum := "h1:LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564="
	for _, tt := range []struct {
		name   string
		module debug.Module
		want   string // the package URL and the hash
	}{
		{"upper case", debug.Module{Path: "github.com/BurntSushi/toml", Version: "v1.6.0"},
			"pkg:golang/github.com/burntsushi/toml@v1.6.0 "},
		{"a version with a sign", debug.Module{Path: "example.com/a", Version: "v2.0.0+incompatible"},
			"pkg:golang/example.com/a@v2.0.0%2Bincompatible "},
		{"a sum", debug.Module{Path: "example.com/a", Version: "v1.0.0", Sum: sum},
			"pkg:golang/example.com/a@v1.0.0 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"},
		{"replaced by another module", debug.Module{Path: "example.com/a", Version: "v1.0.0",
			Replace: &debug.Module{Path: "example.com/b", Version: "v1.1.0"}}, "pkg:golang/example.com/b@v1.1.0 "},
		{"replaced by a folder", debug.Module{Path: "example.com/a", Version: "v1.0.0",
			Replace: &debug.Module{Path: "/home/me/a"}}, "pkg:golang/example.com/a@v1.0.0 "},
	} {
		c := library(&tt.module)
		var hashes []string
		for _, h := range c.Hashes {
			hashes = append(hashes, h.Content)
		}
		if got := c.URL + " " + strings.Join(hashes, " "); got != tt.want || c.Ref != c.URL {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
