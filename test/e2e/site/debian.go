// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// contribPackages is what contrib/install.sh calls the set of packages.
const contribPackages = "contrib-2"

// Debian is where contrib/install.sh has unpacked the programs that check the files of contrib.
type Debian struct {
	t    testing.TB
	Root string   // the folder with the unpacked packages
	Env  []string // the libraries of the programs
}

// Unpacked returns the programs, and fails the test where they are not there.
func Unpacked(t testing.TB) Debian {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(cache, "aip-gateway", contribPackages)
	if _, err := os.Stat(root); err != nil {
		t.Fatalf("%v; run make contrib", err)
	}
	var folders []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/systemd", "lib/*-linux-gnu"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, found...)
	}
	return Debian{t: t, Root: root, Env: []string{"LD_LIBRARY_PATH=" + strings.Join(folders, ":")}}
}

// Check runs a program that must find no mistake, and returns what it prints.
func (d Debian) Check(env []string, program string, args ...string) string {
	d.t.Helper()
	env = append(env, d.Env...)
	status, stdout, stderr := RunProcess(d.t, d.t.TempDir(), env, filepath.Join(d.Root, program), args...)
	if status != 0 {
		d.t.Errorf("%s %q ended with %d:\n%s%s", program, args, status, stdout, stderr)
	}
	return stdout + stderr
}
