// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// TestEverySettingHasAComment holds the fields of the configuration, which Caddy's documentation of modules shows.
func TestEverySettingHasAComment(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"acps", "agents", "bounds", "cards", "pki", "proof", "rules", "store",
		"storepebble", "storememory", "storejetstream", "webhooks"} {
		modules, err := filepath.Glob(room + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, modules...)
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

// TestCommentsNameTheDialects holds the comments of the two settings that take dialects.
func TestCommentsNameTheDialects(t *testing.T) {
	for _, tt := range []struct {
		file, field string
		dialects    []string
	}{
		{"agents/config.go", "Dialect", gateway.AgentDialects()}, {"gateway.go", "Callers", gateway.CallerDialects()},
	} {
		file, err := goparser.ParseFile(token.NewFileSet(), tt.file, nil, goparser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil && field.Names[0].Name == tt.field {
				words := strings.FieldsFunc(field.Doc.Text(), func(r rune) bool { return strings.ContainsRune(" \n,:()", r) })
				for _, name := range tt.dialects {
					if !slices.Contains(words, name) && !slices.Contains(words, name+".") {
						t.Errorf("the comment of %s does not name %s", tt.field, name)
					}
				}
			}
			return true
		})
	}
}
