// SPDX-License-Identifier: Apache-2.0

// Package checkout lists the project's files, for tests of its source. Only tests import it.
package checkout

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Files returns the files below the working directory by pathspecs of git, or all files without one: committed ones,
// and new ones not ignored, so that a test fails before a file is added and not after it.
func Files(t testing.TB, pathspecs ...string) (files []string) {
	t.Helper()
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, pathspecs...)
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			continue // removed, and not committed
		}
		files = append(files, file)
	}
	return files
}
