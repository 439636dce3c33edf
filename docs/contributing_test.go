// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/checkout"
)

// TestContributing looks for the files, the packages, the exported names and the methods that CONTRIBUTING.md tells to
// use.
func TestContributing(t *testing.T) {
	file, name := regexp.MustCompile(`^[a-z0-9_/]+(/|\.(go|md))$`), regexp.MustCompile(`^([a-z0-9]+)\.([A-Z]\w*)$`)
	method := regexp.MustCompile(`^([A-Z]\w*)\.(\w+)$`)
	rooms := make(map[string]string) // the source of each package, by the last part of its path
	for _, path := range checkout.Files(t, "*.go") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rooms[filepath.Base(filepath.Dir(path))] += string(text)
	}
	found := 0
	for _, quoted := range inQuotes(pages(t)["CONTRIBUTING.md"]) {
		if file.MatchString(quoted) {
			found++
			if _, err := os.Stat(quoted); err != nil {
				t.Errorf("CONTRIBUTING.md names %s: %v", quoted, err)
			}
		}
		if m := name.FindStringSubmatch(quoted); m != nil && rooms[m[1]] != "" {
			found++
			if !regexp.MustCompile(`(?m)^(func|type|const|var) (\(.*\) )?` + m[2] + `\b`).MatchString(rooms[m[1]]) {
				t.Errorf("CONTRIBUTING.md names %s, which there is not", quoted)
			}
		}
		if _, err := os.Stat(quoted); err == nil {
			continue
		}
		if m := method.FindStringSubmatch(quoted); m != nil {
			found++
			declared := regexp.MustCompile(`(?m)^func \(\w+ \*?` + m[1] + `\) ` + m[2] + `\(`)
			if !slices.ContainsFunc(slices.Collect(maps.Values(rooms)), declared.MatchString) {
				t.Errorf("CONTRIBUTING.md names %s, which there is not", quoted)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d names were found", found)
	}
}
