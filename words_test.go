// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/checkout"
)

// A clause with one of these words hides its subject. "Returns the tasks of a Leader, newest first", not "what a Leader
// has of tasks, of which the newest is first".
var clauses = regexp.MustCompile(`(?i)\b(that|which|what|who|whom|whose|where|how|why)\b`)

// The most such words in a hundred. They only fall: a change that brings them down writes the new figure here.
const (
	mostInComments = 1.8
	mostInPages    = 1.0
)

// TestWords counts relative and question words in comments and pages. With -v it lists the files with most of them.
func TestWords(t *testing.T) {
	var comments, pages prose
	for _, file := range checkout.Files(t, "*.go", ":!:**/testdata/**") {
		p := prose{file: file}
		p.add(commentsOf(t, file))
		comments.files = append(comments.files, p)
	}
	for _, file := range checkout.Files(t, "README.md", "CONTRIBUTING.md", "docs/*.md") {
		p := prose{file: file}
		p.add(plain(t, file))
		pages.files = append(pages.files, p)
	}
	for name, kind := range map[string]struct {
		prose
		most float64
	}{"comments": {comments, mostInComments}, "pages": {pages, mostInPages}} {
		for _, p := range kind.files {
			kind.words += p.words
			kind.found += p.found
		}
		slices.SortFunc(kind.files, func(a, b prose) int { return b.found - a.found })
		for _, p := range kind.files[:min(40, len(kind.files))] {
			t.Logf("%s: %v", p.file, p)
		}
		t.Logf("%s: %v", name, kind.prose)
		if kind.share() > kind.most {
			t.Errorf("the %s have %v, want at most %v: name the actor, and say one thought in a sentence", name, kind.prose,
				kind.most)
		}
	}
}

// prose is text, and how many of its words begin clauses.
type prose struct {
	file         string
	words, found int
	files        []prose
}

func (p *prose) add(text string) {
	p.words += len(strings.Fields(text))
	p.found += len(clauses.FindAllString(text, -1))
}

func (p prose) share() float64 { return 100 * float64(p.found) / float64(max(p.words, 1)) }

func (p prose) String() string {
	return fmt.Sprintf("%d of %d words (%.1f %%)", p.found, p.words, p.share())
}

// commentsOf returns the comments of a file in Go.
func commentsOf(t *testing.T, file string) string {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile(file, -1, len(src)), src, nil, scanner.ScanComments)
	var text strings.Builder
	for {
		_, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return text.String()
		case tok == token.COMMENT && !strings.HasPrefix(lit, "//go:") && !strings.Contains(lit, "SPDX-"):
			text.WriteString(strings.TrimLeft(lit, "/* ") + "\n")
		}
	}
}

// plain returns a page without its examples and code.
func plain(t *testing.T, file string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i, part := range strings.Split(string(page), "\n```") {
		if i%2 == 0 {
			text.WriteString(part + "\n")
		}
	}
	return regexp.MustCompile("`[^`]*`").ReplaceAllString(text.String(), "")
}
