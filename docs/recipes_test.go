// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/google/go-cmp/cmp"
)

// TestDocsRecipes holds that each recipe of docs/recipes.md has one Caddyfile, which TestDocsExamples validates, with a
// store and at least one agent, and that the page's JSON is what Caddy makes of its recipe.
func TestDocsRecipes(t *testing.T) {
	page := pages(t)["docs/recipes.md"]
	recipes := make(map[string]string)
	for _, section := range strings.Split(page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		found := regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%q has %d blocks, and not one", heading, len(found))
		}
		recipes[heading] = found[0][2]
		if found[0][1] == "json" {
			continue
		}
		for _, want := range []string{"\t\tstore pebble /", "\taip_gateway "} {
			if !strings.Contains(found[0][2], want) {
				t.Errorf("the Caddyfile of %q is not complete: it has no %q", heading, strings.TrimSpace(want))
			}
		}
	}
	if len(recipes) < 7 {
		t.Fatalf("there are only %d recipes", len(recipes))
	}
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").
		Adapt([]byte(recipes["Metrics with traces"]), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, adapted, "", "  "); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pretty.String()+"\n", recipes["The same in JSON"]); diff != "" {
		t.Errorf("the JSON is not that of the recipe (-Caddy +page):\n%s", diff)
	}
}
