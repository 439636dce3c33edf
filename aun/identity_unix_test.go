// SPDX-License-Identifier: Apache-2.0

//go:build unix

package aun_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
)

// TestIdentityOfOthers: the key of an AID in a file readable by others is not used.
//
// Promise: keys of certificates
func TestIdentityOfOthers(t *testing.T) {
	id, err := aun.NewIdentity("alice.aid.test")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "aun.pem")
	if err := id.Save(path, false); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o644: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := aun.LoadIdentity(path); (err == nil) != ok {
			t.Errorf("with the mode %v: %v", mode, err)
		}
	}
}
