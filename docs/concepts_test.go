// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestDocsMoves holds the table of docs/concepts.md against the state table.
func TestDocsMoves(t *testing.T) {
	var got, want []string
	for _, row := range tables(pages(t)["docs/concepts.md"], "| state | moved by | to |") {
		from, command := strings.Trim(row[0], "`"), ""
		if from == "(none)" {
			from = ""
		}
		if m := regexp.MustCompile("^the Leader's `([a-z]+)`").FindStringSubmatch(row[1]); m != nil {
			command = m[1]
		}
		got = append(got, fmt.Sprintf("%s %s %s", from, command, strings.Trim(row[2], "`")))
	}
	for _, row := range task.Table() {
		if row.To != task.None {
			want = append(want, fmt.Sprintf("%s %s %s", row.From, row.Command, row.To))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/concepts.md does not have the moves of the code (-code +page):\n%s", diff)
	}
}
