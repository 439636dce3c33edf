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

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestDocsLogLines compares the table of docs/operations.md with what the code logs at info level and above.
func TestDocsLogLines(t *testing.T) {
	logged := make(map[string]string) // messages, by level
	for _, room := range []string{"aun", "caddymodule", "directory", "gateway", "group", "identity", "mailbox", "notify",
		"partner", "replay", "sseproxy", "upstream"} {
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
			ast.Inspect(file, func(n ast.Node) bool { return logCall(n, logged) })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	inPage := make(map[string]string)
	for _, row := range tables(pages(t)["docs/operations.md"], "| level | line | means |") {
		inPage[strings.Trim(row[1], "`")] = row[0]
	}
	if diff := cmp.Diff(logged, inPage); diff != "" {
		t.Errorf("docs/operations.md does not have the log lines of the code (-code +page):\n%s", diff)
	}
}

// logCall notes the message of a call of slog, but for those at debug level.
func logCall(n ast.Node, into map[string]string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	level, at := "", 0
	switch method.Sel.Name {
	case "Info", "Warn", "Error":
		level = strings.ToLower(method.Sel.Name)
	case "Log":
		level, at = "by kind", 2
	case "LogAttrs":
		at = 2
		if len(call.Args) > 2 {
			if s, ok := call.Args[1].(*ast.SelectorExpr); ok {
				level = strings.ToLower(strings.TrimPrefix(s.Sel.Name, "Level"))
			}
		}
	default:
		return true
	}
	if on, ok := method.X.(*ast.Ident); ok && on.Name == "http" || len(call.Args) <= at {
		return true
	}
	if message, ok := stringOf(call.Args[at]); ok && level != "debug" {
		into[message] = level
	}
	return true
}

// TestDocsCommands holds the table of docs/operations.md against the commands that there are.
func TestDocsCommands(t *testing.T) {
	root := &cobra.Command{Use: "aip"}
	caddycmd.Commands()["aip"].CobraFunc(root)
	var want []string
	var walk func(path string, c *cobra.Command)
	walk = func(path string, c *cobra.Command) {
		path += " " + c.Name()
		if len(c.Commands()) == 0 {
			want = append(want, path)
		}
		for _, sub := range c.Commands() {
			walk(path, sub)
		}
	}
	walk("caddy", root)
	got := firstQuoted(t, "docs/operations.md", "| command | does |")
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md does not have the commands of the code (-code +page):\n%s", diff)
	}
}
