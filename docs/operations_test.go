// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"slices"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestDocsCommands holds the table of docs/operations.md against the commands that there are.
func TestDocsCommands(t *testing.T) {
	root := &cobra.Command{Use: "aip"}
	caddycmd.Commands()["aip"].CobraFunc(root)
	var want []string
	var walk func(path string, c *cobra.Command)
	walk = func(path string, c *cobra.Command) {
		path += " " + c.Name()
		if len(c.Commands()) == 0 {
			want = append(want, path)
		}
		for _, sub := range c.Commands() {
			walk(path, sub)
		}
	}
	walk("caddy", root)
	got := firstQuoted(t, "docs/operations.md", "| command | does |")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md does not have the commands of the code (-code +page):\n%s", diff)
	}
}
