// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/checkout"
)

// TestDocsTroubleshooting holds the sentences that the page quotes to those of the code: each is in a literal, where
// "…" stands for what a verb of fmt inserts, or for the rest of the sentence.
func TestDocsTroubleshooting(t *testing.T) {
	verb := regexp.MustCompile(`%[-+# 0]*[0-9.]*[a-zA-Z]`)
	var said []string
	for _, name := range checkout.Files(t, "*.go", ":!:*_test.go", ":!:test", ":!:contrib") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := joined(e)
			if ok {
				said = append(said, verb.ReplaceAllString(text, "…"))
			}
			return !ok
		})
	}
	all := strings.Join(said, "\n")
	quoted := regexp.MustCompile(`"([^"]+)"`)
	found := 0
	for line := range strings.Lines(pages(t)["docs/troubleshooting.md"]) {
		symptom, _, inTable := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !inTable {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(symptom, -1) {
			found++
			if !strings.Contains(all, strings.Trim(m[1], "…")) {
				t.Errorf("the page quotes %q, which nothing says", m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d sentences were found", found)
	}
}

// joined returns a string that is written in several literals with plus signs between them.
func joined(e ast.Expr) (string, bool) {
	sum, ok := e.(*ast.BinaryExpr)
	if !ok || sum.Op != token.ADD {
		return stringOf(e)
	}
	left, ok := joined(sum.X)
	if !ok {
		return "", false
	}
	right, ok := joined(sum.Y)
	return left + right, ok
}
