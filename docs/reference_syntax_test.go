// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// An option of a Caddyfile, as a comment of the parser's code writes it under "Syntax:". Angle brackets stand for
// values, square ones for what may be left out, a bar for one of two, and three dots for one value or more.
type option struct {
	form   string // without its block, with single spaces
	block  []*option
	opens  bool // it may have a block
	parent *option
}

// name returns the words of an option before its values.
func (o *option) name() string {
	var words []string
	for word := range strings.FieldsSeq(o.form) {
		if strings.ContainsAny(word, "<[") || word == "|" {
			break
		}
		words = append(words, word)
	}
	if o.parent != nil && len(words) > 1 { // another word is a value, as in: ocsp query
		words = words[:1]
	}
	return strings.Join(words, " ")
}

// path returns the names of the blocks to an option, from the directive on.
func (o *option) path() string {
	if o.parent == nil {
		return o.name()
	}
	return strings.TrimSpace(o.parent.path() + " " + o.name())
}

// syntax returns the directives, and what else has a comment with its syntax, by their names.
func syntax(t *testing.T) map[string]*option {
	t.Helper()
	all := make(map[string]*option)
	err := filepath.WalkDir("caddymodule", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			_, text, ok := strings.Cut(f.Doc.Text(), "Syntax:\n\n")
			if !ok {
				continue
			}
			o := readSyntax(t, path, strings.Split(text, "\n"))
			if all[o.name()] != nil {
				t.Errorf("%s: there are two comments with the syntax of %s", path, o.name())
			}
			all[o.name()] = o
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		fill(t, o, all)
	}
	return all
}

// readSyntax reads the lines of a comment up to the first one without an indent.
func readSyntax(t *testing.T, path string, lines []string) *option {
	t.Helper()
	top := new(option)
	open := top
	for _, line := range lines {
		if !strings.HasPrefix(line, "\t") {
			break
		}
		line = strings.Join(strings.Fields(line), " ")
		if line == "}" {
			open = open.parent
			continue
		}
		o := &option{parent: open}
		o.form, o.opens = strings.CutSuffix(line, " {")
		form, elsewhere := strings.CutSuffix(line, " { ... }")
		if elsewhere {
			o.form, o.opens = form, true
		}
		if open.block = append(open.block, o); o.opens && !elsewhere {
			open = o
		}
	}
	if open != top || len(top.block) != 1 {
		t.Fatalf("%s: a comment with a syntax is not one option with its block", path)
	}
	top.block[0].parent = nil
	return top.block[0]
}

// fill gives the options of a block their own blocks that stand in comments of their own.
func fill(t *testing.T, o *option, all map[string]*option) {
	t.Helper()
	for _, inner := range o.block {
		if inner.opens && inner.block == nil {
			from := all[inner.name()]
			if from == nil {
				t.Fatalf("no comment has the syntax of %s", inner.name())
			}
			for _, c := range from.block {
				inner.block = append(inner.block, clone(c, inner))
			}
		}
		fill(t, inner, all)
	}
}

func clone(o, parent *option) *option {
	c := &option{form: o.form, opens: o.opens, parent: parent}
	for _, inner := range o.block {
		c.block = append(c.block, clone(inner, c))
	}
	return c
}

// options returns an option and those in its block, in order.
func (o *option) options() (all []*option) {
	all = append(all, o)
	for _, inner := range o.block {
		all = append(all, inner.options()...)
	}
	return all
}

// written returns the ways in which an option can be written, without its block: with and without what may be left
// out, and with each of its words. value gives the text for a name in angle brackets.
func (o *option) written(value func(name string) string) (ways []string) {
	tokens := regexp.MustCompile(`\[|\]|[^\s\[\]]+`).FindAllString(o.form, -1)
	first := tokens[0]
	var rest [][]string
	if len(tokens) > 1 && !strings.HasPrefix(first, "<") {
		rest, _ = expand(tokens[1:], value)
	} else if rest, _ = expand(tokens, value); len(tokens) > 0 {
		first = ""
	}
	for name := range strings.SplitSeq(first, "|") {
		for _, words := range rest {
			ways = append(ways, strings.TrimSpace(name+" "+strings.Join(words, " ")))
		}
	}
	slices.SortStableFunc(ways, func(a, b string) int {
		return len(strings.Fields(a)) - len(strings.Fields(b))
	})
	return slices.Compact(ways)
}

// expand reads tokens up to the end of a bracket, and returns the ways to write them, and the tokens behind it.
func expand(tokens []string, value func(string) string) (ways [][]string, behind []string) {
	now := [][]string{nil}
	add := func(more [][]string) {
		var all [][]string
		for _, way := range now {
			for _, m := range more {
				all = append(all, slices.Concat(way, m))
			}
		}
		now = all
	}
	for len(tokens) > 0 {
		word := tokens[0]
		tokens = tokens[1:]
		switch {
		case word == "]":
			return append(ways, now...), tokens
		case word == "|":
			ways, now = append(ways, now...), [][]string{nil}
		case word == "[":
			var inner [][]string
			inner, tokens = expand(tokens, value)
			add(append(inner, nil))
		default:
			var words [][]string
			for _, w := range alternatives(strings.TrimSuffix(word, "...")) {
				words = append(words, []string{placeholders.ReplaceAllStringFunc(w, func(name string) string {
					return value(strings.Trim(name, "<>"))
				})})
			}
			add(words)
		}
	}
	return append(ways, now...), nil
}

var placeholders = regexp.MustCompile(`<[^>]+>`)

// alternatives returns the words of a word with bars. A bar in angle brackets is part of a name.
func alternatives(word string) (all []string) {
	for word != "" {
		end := regexp.MustCompile(`^(<[^>]*>|[^|])*`).FindString(word)
		all = append(all, end)
		word = strings.TrimPrefix(word[len(end):], "|")
	}
	return all
}
