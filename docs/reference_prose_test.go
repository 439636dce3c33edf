// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/doc/comment"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// write writes a comment of Go as Markdown, below a heading of a level.
func (r *reference) write(text string, level int) {
	doc := new(comment.Parser).Parse(text)
	for _, block := range doc.Content {
		switch block := block.(type) {
		case *comment.Paragraph:
			r.out.WriteString(prose(r.t, "docs/configuration", plainText(block.Text)) + "\n\n")
		case *comment.Heading:
			fmt.Fprintf(&r.out, "%s %s\n\n", strings.Repeat("#", level+1), plainText(block.Text))
		case *comment.List:
			for _, it := range block.Items {
				var parts []string
				for _, b := range it.Content {
					if p, ok := b.(*comment.Paragraph); ok {
						parts = append(parts, prose(r.t, "docs/configuration", plainText(p.Text)))
					}
				}
				fmt.Fprintf(&r.out, "- %s\n", strings.Join(parts, " "))
			}
			r.out.WriteString("\n")
		case *comment.Code:
			language := ""
			if strings.Contains(block.Text, "aip") {
				language = "caddyfile"
			}
			fmt.Fprintf(&r.out, "```%s\n%s```\n\n", language, block.Text)
		}
	}
}

// plainText returns the text of a paragraph.
func plainText(all []comment.Text) string {
	var b strings.Builder
	for _, text := range all {
		switch text := text.(type) {
		case comment.Plain:
			b.WriteString(string(text))
		case comment.Italic:
			b.WriteString(string(text))
		case *comment.Link:
			b.WriteString(plainText(text.Text))
		case *comment.DocLink:
			b.WriteString("[" + plainText(text.Text) + "]")
		}
	}
	return b.String()
}

var (
	// The name of a page in a comment becomes a link.
	pageName = regexp.MustCompile(`docs/([a-z/-]+)\.md(#[a-z0-9_-]+)?`)

	// What only code has: names with underscores, placeholders, values that begin with a digit behind "Default:".
	aWord    = regexp.MustCompile("`[^`]*`|(<[^>]*>|[^\\s(`<])*(<[^>]*>|[^\\s(`.,;:)])")
	codeLike = regexp.MustCompile(`[_<>{}*|]|^/[a-z.]|^aip/2$|:/`)
	dflt     = regexp.MustCompile(`Default: ([0-9]([^ .,;]|\.[0-9])*( [KMG]iB)?)`)
)

// prose returns a text of a comment as Markdown, for a page in a directory.
func prose(t *testing.T, dir, text string) string {
	t.Helper()
	text = strings.Join(strings.Fields(text), " ")
	text = dflt.ReplaceAllString(text, "Default: `$1`")
	var links []string
	text = pageName.ReplaceAllStringFunc(text, func(name string) string {
		links = append(links, name)
		return "\x00"
	})
	text = aWord.ReplaceAllStringFunc(text, func(word string) string {
		if strings.HasPrefix(word, "`") || !codeLike.MatchString(word) {
			return word
		}
		return "`" + word + "`"
	})
	for _, name := range links {
		text = strings.Replace(text, "\x00", linkTo(t, dir, name), 1)
	}
	return text
}

// linkTo returns a link to a page, from a page in a directory.
func linkTo(t *testing.T, dir, name string) string {
	t.Helper()
	file, anchor, found := strings.Cut(name, "#")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
	rel, err := filepath.Rel(dir, file)
	if err != nil {
		t.Fatal(err)
	}
	if found {
		rel += "#" + anchor
	}
	return fmt.Sprintf("[%s](%s)", title, rel)
}

var severalWords = regexp.MustCompile(`[\w.]+(\|[\w.]+)+`)

// withWords puts the words of an option into backquotes, where a text explains them or names the default.
func withWords(text, form string) string {
	for _, words := range severalWords.FindAllString(form, -1) {
		for word := range strings.SplitSeq(words, "|") {
			explained := regexp.MustCompile("(^|[^`\\w])" + regexp.QuoteMeta(word) + `( \(|:)`)
			text = explained.ReplaceAllString(text, "$1`"+word+"`$2")
			text = strings.Replace(text, "Default: "+word+".", "Default: `"+word+"`.", 1)
		}
	}
	return text
}
