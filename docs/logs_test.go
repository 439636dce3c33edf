// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const logTable = "| level | line | fields | means, and what to do |"

// logLine is what the source, or the page, says about a line of the log.
type logLine struct {
	Level  string
	Fields string // their names, in order, each once
}

// TestDocsLogLines compares the tables of docs/logs.md with what the code logs: every line, with its level and its
// fields.
func TestDocsLogLines(t *testing.T) {
	logged := make(map[string]logLine)
	for _, room := range []string{"acps", "aun", "caddymodule", "cluster", "front", "gateway", "identity", "node",
		"notify", "operator", "partner", "replay", "sseproxy", "trust", "upstream"} {
		err := filepath.WalkDir(room, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == "replaytest" { // it reports to a test
				return filepath.SkipDir
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					noteLogCall(call, logged)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	inPage := make(map[string]logLine)
	for _, row := range tables(pages(t)["docs/logs.md"], logTable) {
		fields := inQuotes(row[2])
		slices.Sort(fields)
		inPage[strings.Trim(row[1], "`")] = logLine{row[0], strings.Join(fields, " ")}
	}
	if diff := cmp.Diff(logged, inPage); diff != "" {
		t.Errorf("docs/logs.md does not have the log lines of the code (-code +page):\n%s", diff)
	}
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

// noteLogCall notes the line of a call of slog.
func noteLogCall(call *ast.CallExpr, into map[string]logLine) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	level, at := "", 0
	switch method.Sel.Name {
	case "Debug", "Info", "Warn", "Error":
		level = strings.ToLower(method.Sel.Name)
	case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
		level, at = strings.ToLower(strings.TrimSuffix(method.Sel.Name, "Context")), 1
	case "Log", "LogAttrs":
		level, at = "by kind", 2
		if len(call.Args) > 2 {
			if s, ok := call.Args[1].(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Level") {
				level = strings.ToLower(strings.TrimPrefix(s.Sel.Name, "Level"))
			}
		}
	default:
		return
	}
	if on, ok := method.X.(*ast.Ident); ok && on.Name == "http" || len(call.Args) <= at {
		return
	}
	message, ok := stringOf(call.Args[at])
	if !ok {
		return
	}
	fields := logFields(call.Args[at+1:])
	if on, ok := method.X.(*ast.Ident); ok && on.Name == "bug" {
		level, fields = "error", append(fields, "panic", "stack")
	}
	if other, ok := into[message]; ok { // the line has another field in another place
		fields = append(fields, strings.Fields(other.Fields)...)
	}
	slices.Sort(fields)
	into[message] = logLine{level, strings.Join(slices.Compact(fields), " ")}
}

// logFields returns the names of the fields in the arguments of a call of slog: pairs of a name and a value, Attrs, or
// the call of a function that adds to such arguments.
func logFields(args []ast.Expr) (names []string) {
	for i := 0; i < len(args); i++ {
		if name, ok := stringOf(args[i]); ok {
			names = append(names, name)
			i++ // its value
			continue
		}
		call, ok := args[i].(*ast.CallExpr)
		if !ok {
			continue
		}
		if name, ok := call.Fun.(*ast.SelectorExpr); ok && name.Sel.Name != "about" && len(call.Args) > 0 { // slog.String
			names = append(names, logFields(call.Args[:1])...)
			continue
		}
		names = append(names, logFields(call.Args)...)
	}
	return names
}
