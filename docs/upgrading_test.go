// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsVersions: the page names the versions of Go and Caddy that go.mod has, and the formats that the store opens.
func TestDocsVersions(t *testing.T) {
	page := pages(t)["docs/upgrading.md"]
	rows := tables(page, "| | version |")
	mod := read(t, "go.mod")
	want := [][]string{
		{"Go", regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(mod)[1]},
		{"Caddy", regexp.MustCompile(`caddyserver/caddy/v2 (\S+)`).FindStringSubmatch(mod)[1]},
	}
	if !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("the versions are %q, want %q", rows, want)
	}

	var opened []string
	for _, m := range regexp.MustCompile(`"(aip-gateway store \d+)"`).
		FindAllStringSubmatch(read(t, "replay/pebble/format.go"), -1) {
		opened = append(opened, "`"+m[1]+"`")
	}
	var named []string
	for _, row := range tables(page, "| format | opened by this version |") {
		if strings.HasPrefix(row[1], "yes") {
			named = append(named, strings.Split(row[0], ", ")...)
		}
	}
	if len(opened) == 0 || !slices.Equal(named, opened) {
		t.Errorf("the page says that the formats %q are opened, want %q", named, opened)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
