// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/checkout"
)

// TestDocsPromises holds each promise of the tables of docs/security.md to a test that shows it. A test says so in a
// line of its comment, "Promise: " and the first cell of the row.
func TestDocsPromises(t *testing.T) {
	page := pages(t)["docs/security.md"]
	promised := make(map[string]bool)
	for _, row := range tables(page, "| party | is trusted with | is not trusted with |") {
		if row[2] != "" || row[1] == "nothing" {
			promised[row[0]] = true
		}
	}
	for _, row := range tables(page, "| threat | what the gateway does | what remains for you |") {
		if row[1] != "" {
			promised[row[0]] = true
		}
	}
	for _, row := range tables(page, "| data | where | form |") {
		promised[row[0]] = true
	}
	if len(promised) < 20 {
		t.Errorf("the tables have only %d promises", len(promised))
	}
	shown := make(map[string]bool)
	for _, name := range checkout.Files(t, "*_test.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Doc == nil || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			for _, c := range f.Doc.List {
				promise, ok := strings.CutPrefix(c.Text, "// Promise: ")
				if !ok {
					continue
				}
				if shown[promise] = true; !promised[promise] {
					t.Errorf("%s: %s shows a promise that docs/security.md does not make: %q", filepath.ToSlash(name),
						f.Name.Name, promise)
				}
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(promised)), slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Errorf("promises of docs/security.md, and those that a test shows (-promised +shown):\n%s", diff)
	}
}
