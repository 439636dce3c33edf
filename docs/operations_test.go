// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	_ "github.com/aip-gateway/aip-gateway/cli"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestDocsCommands holds the table of docs/operations.md against the commands that there are.
func TestDocsCommands(t *testing.T) {
	root := &cobra.Command{Use: "aip"}
	caddycmd.Commands()["aip"].CobraFunc(root)
	var want []string
	var walk func(path string, c *cobra.Command)
	walk = func(path string, c *cobra.Command) {
		path = strings.TrimSpace(path + " " + c.Name())
		if len(c.Commands()) == 0 || c.LocalFlags().Lookup("address") != nil { // the latter asks by itself, too
			want = append(want, path)
		}
		for _, sub := range c.Commands() {
			walk(path, sub)
		}
	}
	for _, c := range root.Commands() {
		walk("", c)
	}
	var got []string
	for _, row := range tables(pages(t)["docs/operations.md"], "| for | `caddy aip …` |") {
		for _, name := range inQuotes(row[1]) {
			if !strings.HasPrefix(name, "-") && name != "webhook" { // a flag; a command of `call`
				got = append(got, name)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md does not have the commands of the code (-code +page):\n%s", diff)
	}
}

// TestDocsRoutes holds the tables of routes of the admin API against the routes that there are, and the parameters that
// they take.
func TestDocsRoutes(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `([A-Z, ]+ /aip/[a-z/]+)` \\| (.*?) ?\\| ")
	takes := make(map[string]string)
	for _, page := range pages(t) {
		for _, m := range row.FindAllStringSubmatch(page, -1) {
			takes[m[1]] = m[2]
		}
	}
	for _, route := range adminapi.Routes {
		name := route.Method + " " + route.Path
		cell, ok := takes[name]
		if !ok {
			t.Errorf("no page has a row of %s", name)
		}
		delete(takes, name)
		if strings.HasPrefix(cell, "the same query") {
			continue
		}
		for _, parameter := range route.Query {
			if !slices.Contains(inQuotes(cell), parameter) {
				t.Errorf("the row of %s does not name %s", name, parameter)
			}
		}
	}
	for name := range takes {
		t.Errorf("a page has a row of %s, which there is not", name)
	}
}
