// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEverySettingHasAComment holds the fields of the configuration, which Caddy's documentation of modules shows.
func TestEverySettingHasAComment(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	settings := 0
	for _, name := range files {
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, goparser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Tag == nil || !strings.Contains(field.Tag.Value, "json:") || !field.Names[0].IsExported() {
				return true
			}
			settings++
			if !strings.HasSuffix(strings.TrimSpace(field.Doc.Text()), ".") {
				t.Errorf("%s: %s has no comment", name, field.Names[0])
			}
			return true
		})
	}
	if settings < 50 {
		t.Errorf("%d settings", settings)
	}
}
