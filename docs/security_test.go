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
	held(t, "docs/security.md", "Promise", promised)
}

// held holds each claim of a page to a test that shows it. A test says so in a line of its comment: the word, and the
// claim.
func held(t *testing.T, page, word string, claimed map[string]bool) {
	t.Helper()
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
				claim, ok := strings.CutPrefix(c.Text, "// "+word+": ")
				if !ok {
					continue
				}
				if shown[claim] = true; !claimed[claim] {
					t.Errorf("%s: %s shows what %s does not claim: %q", filepath.ToSlash(name), f.Name.Name, page, claim)
				}
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(claimed)), slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Errorf("what %s claims, and what a test shows (-claimed +shown):\n%s", page, diff)
	}
}
