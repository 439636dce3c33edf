// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/checkout"
)

// logLine is a line of the log at a level of warnings or errors.
type logLine struct{ pkg, level, message, todo string }

// logsMade is the line of docs/logs.md from which on it is made of the source.
const logsMade = "<!-- The rest is made of the source: go test ./docs -run LogLines -update -->\n"

// TestDocsLogLines compares docs/logs.md with the warnings and errors of the code, or writes it. The comment above a
// call says behind "What to do:" how an operator mends its cause.
func TestDocsLogLines(t *testing.T) {
	var all []logLine
	for _, path := range checkout.Files(t, "*.go", ":!:*_test.go", ":!:test/", ":!:contrib/", ":!:cli/", ":!:internal/",
		":!:docs/", ":!:*test/*") {
		all = append(all, logLines(t, path)...)
	}
	slices.SortFunc(all, func(a, b logLine) int {
		return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.level, b.level),
			strings.Compare(a.message, b.message), -strings.Compare(a.todo, b.todo))
	})
	all = slices.CompactFunc(all, func(a, b logLine) bool { return a.pkg == b.pkg && a.message == b.message })
	page, err := os.ReadFile("docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	above, _, ok := strings.Cut(string(page), logsMade)
	if !ok {
		t.Fatalf("docs/logs.md lacks the line %q", logsMade)
	}
	var b strings.Builder
	b.WriteString(above + logsMade)
	b.WriteString("\n|package|level|message|what to do|\n|---|---|---|---|\n")
	for _, l := range all {
		fmt.Fprintf(&b, "|%s|%s|`%s`|%s|\n", l.pkg, l.level, l.message, l.todo)
	}
	if len(all) < 100 {
		t.Errorf("only %d lines were found", len(all))
	}
	t.Logf("%d lines", len(all))
	generated(t, "docs/logs.md", b.String())
}

// logLines returns the warnings and errors that a file logs.
func logLines(t *testing.T, path string) (all []logLine) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	todos := make(map[int]string) // by the line behind the comment
	for _, c := range file.Comments {
		if _, todo, ok := strings.Cut(c.Text(), "What to do: "); ok {
			todos[files.Position(c.End()).Line+1] = prose(t, "docs", todo)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if level, message := logCall(call); level == "warn" || level == "error" {
				todo := todos[files.Position(call.Pos()).Line]
				all = append(all, logLine{filepath.Dir(path), level, message, todo})
			}
		}
		return true
	})
	return all
}

// TestLogLinesNameTheTrace: in the rooms that handle calls, a line that is logged where there is a context is logged
// with one, so that it has the trace of what it is about.
func TestLogLinesNameTheTrace(t *testing.T) {
	for _, room := range []string{"trust/aac", "gateway", "front/group", "notify", "partner", "trust/policy", "upstream"} {
		err := filepath.WalkDir(room, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil || !slices.ContainsFunc(f.Type.Params.List, isContext) {
					continue
				}
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if call, ok := n.(*ast.CallExpr); ok && logsWithoutContext(call) {
						t.Errorf("%s: log the line with the context", files.Position(call.Pos()))
					}
					return true
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// isContext reports whether a parameter is the context.
func isContext(f *ast.Field) bool { return len(f.Names) == 1 && f.Names[0].Name == "ctx" }

// logsWithoutContext reports whether a call logs a line, and no context with it.
func logsWithoutContext(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	if _, ok := stringOf(call.Args[0]); !ok {
		return false
	}
	return slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name)
}

// logCall returns the level and the message of a call of slog; none for other calls, and for levels that vary.
func logCall(call *ast.CallExpr) (level, message string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	at := 0
	switch method.Sel.Name {
	case "Warn", "Error":
		level = strings.ToLower(method.Sel.Name)
	case "WarnContext", "ErrorContext":
		level, at = strings.ToLower(strings.TrimSuffix(method.Sel.Name, "Context")), 1
	case "Log", "LogAttrs":
		at = 2
		if len(call.Args) > 2 {
			if s, ok := call.Args[1].(*ast.SelectorExpr); ok {
				level = strings.ToLower(strings.TrimPrefix(s.Sel.Name, "Level"))
			}
		}
	default:
		return "", ""
	}
	on, ok := method.X.(*ast.Ident)
	if ok && on.Name == "http" || len(call.Args) <= at {
		return "", ""
	}
	if ok && on.Name == "bug" {
		level = "error"
	}
	if message, ok = stringOf(call.Args[at]); !ok {
		return "", ""
	}
	return level, message
}
