// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"path"
	"testing"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// TestChecks loads all checks and protocols, so that a key with a slip fails here.
func TestChecks(t *testing.T) {
	protocols := make(map[string]bool)
	entries, err := Files.ReadDir("protocols")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		p, err := acts.LoadProtocol(Files, path.Join("protocols", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		protocols[p.ID] = true
	}
	documents, err := acts.Load(Files, "aip/suite.acts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests := 0
	for _, d := range documents {
		for _, suite := range d.Suites {
			for _, id := range suite.Protocols {
				if !protocols[id] {
					t.Errorf("suite %s is for %s, which has no file", suite.ID, id)
				}
			}
			for _, test := range suite.Tests {
				tests++
				if test.Section == "" {
					t.Errorf("test %s names no section", test.ID)
				}
			}
		}
	}
	if tests == 0 {
		t.Error("there are no tests")
	}
}
