// SPDX-License-Identifier: Apache-2.0

// Package interop tests the agents and clients of this folder against each other, so that what goes wrong behind a
// gateway is the gateway's. It builds what it runs; the programs in JavaScript need node and npm.
package interop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// bin is where the programs in Go are built.
var bin string

func TestMain(m *testing.M) { os.Exit(build(m)) }

// build makes everything that is run, then runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "interop")
	if err == nil {
		defer os.RemoveAll(dir)
		bin = dir
		err = run("", "go", "build", "-o", dir, "./legacy-trpc", "./legacy-trpc-client", "./a2a-go-03", "./a2a-go-10")
	}
	for _, folder := range []string{"js-03", "js-10"} {
		// npm writes this file when it is done, so that a half-done folder is not taken for a whole one.
		_, missing := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json"))
		if err == nil && errors.Is(missing, fs.ErrNotExist) {
			err = run(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %v: %w", name, args, err)
	}
	return nil
}
