// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"
)

// TestDocsMoves holds the table of docs/getting-started.md against the state table.
func TestDocsMoves(t *testing.T) {
	var got []string
	for _, row := range tables(pages(t)["docs/getting-started.md"], "| state | moved by | to |") {
		from, command := strings.Trim(row[0], "`"), ""
		if from == "(none)" {
			from = ""
		}
		if m := regexp.MustCompile("^the Leader's `([a-z]+)`").FindStringSubmatch(row[1]); m != nil {
			command = m[1]
		}
		got = append(got, fmt.Sprintf("%s %s %s", from, command, strings.Trim(row[2], "`")))
	}
	want := moves(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/getting-started.md does not have the moves of the code (-code +page):\n%s", diff)
	}
}

// moves returns the rows of the state table of the code that lead to a state, in its order.
func moves(t *testing.T) (all []string) {
	source, err := os.ReadFile("task/state.go")
	if err != nil {
		t.Fatal(err)
	}
	capital := regexp.MustCompile("([a-z])([A-Z])")
	word := func(name string) string { // of the wire
		if name == "None" || name == "NoCommand" {
			return ""
		}
		return strings.ToLower(capital.ReplaceAllString(name, "$1-$2"))
	}
	for _, row := range regexp.MustCompile(`\{\d+, (\w+), (\w+), (\w+)\},`).FindAllStringSubmatch(string(source), -1) {
		if to := word(row[3]); to != "" {
			all = append(all, fmt.Sprintf("%s %s %s", word(row[1]), word(row[2]), to))
		}
	}
	return all
}
