// SPDX-License-Identifier: Apache-2.0

package site

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
)

// Main runs the tests of a package and ends its process. In a fresh clone it says once what the tests lack, and not by
// each test. It removes what the tests share.
func Main(m *testing.M) {
	if _, err := os.Stat("../../../caddy"); os.Getenv("AIP_CADDY") == "" && errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "the end-to-end tests need the binary, agents and brokers: "+
			"make e2e gets them and runs the tests; after it go test ./test/e2e/... works, too")
		os.Exit(1)
	}
	status := m.Run()
	if rabbit.broker != nil {
		rabbit.broker.Close()
	}
	if pki.dir != "" {
		os.RemoveAll(pki.dir)
	}
	os.Exit(status)
}
