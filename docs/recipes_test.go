// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// TestDocsRecipes holds that each recipe of docs/recipes.md has one Caddyfile, which TestDocsExamples validates, with a
// store and at least one agent.
func TestDocsRecipes(t *testing.T) {
	page := pages(t)["docs/recipes.md"]
	recipes := strings.Split(page, "\n## ")[1:]
	for _, section := range recipes {
		heading, text, _ := strings.Cut(section, "\n")
		found := regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindAllStringSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%q has %d blocks, and not one", heading, len(found))
		}
		for _, want := range []string{"\t\tstore pebble /", "\taip_gateway "} {
			if !strings.Contains(found[0][1], want) {
				t.Errorf("the Caddyfile of %q is not complete: it has no %q", heading, strings.TrimSpace(want))
			}
		}
	}
	if len(recipes) < 7 {
		t.Fatalf("there are only %d recipes", len(recipes))
	}
}
