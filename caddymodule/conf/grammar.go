// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/aip-gateway/aip-gateway/internal/shown"
)

// Grammar is a text with the blocks of directives and of global options, by which the right block of an option is
// found. The options of a block are those that its parser knows: the text needs none.
type Grammar struct {
	// Text has each block once. Its values are names in angle brackets.
	Text string
	// Read reads it, as Caddyfiles are read.
	Read func(*Parser)
	// Repeatable are the options that may stand in a block more than once, some only in the block that is named before
	// them. Each time adds to a list.
	Repeatable []string
	// Gone has the options of former versions, by their paths in a Caddyfile, and so in JSON, with the way without each.
	Gone map[string]string
}

// registered is the grammar of this program.
var registered Grammar

// Register sets the grammar of this program, before any Caddyfile is read.
func Register(g Grammar) { registered = g }

// Block is a block of a grammar.
type Block struct {
	Path    []string // the names of the blocks, from the directive on
	Written []string // the lines that begin them
	Options Options
}

// Each calls f for each block, in the order of the text. It returns what is wrong with the text.
func (g *Grammar) Each(f func(Block)) error {
	tokens, err := caddyfile.Tokenize([]byte(g.Text), "")
	if err != nil || g.Read == nil {
		return err
	}
	p := &Parser{Dispenser: caddyfile.NewDispenser(tokens), grammar: new(Grammar)}
	lines, written := strings.Split(g.Text, "\n"), []string(nil)
	p.open = func(path []string, known Options) {
		written = append(written[:len(path)-1], strings.TrimSuffix(strings.TrimSpace(lines[p.Line()-1]), " {"))
		f(Block{slices.Clone(path), slices.Clone(written), known})
	}
	g.Read(p)
	if p.err == nil && p.Next() {
		p.Fail(strconv.Quote(p.Val()) + " is not read")
	}
	return p.err
}

// repeats reports whether an option may stand in a block more than once.
func (g *Grammar) repeats(block, option string) bool {
	return slices.Contains(g.Repeatable, option) || slices.Contains(g.Repeatable, block+" "+option)
}

// homes returns the blocks that have an option.
func (g *Grammar) homes(option string) (all []Block) {
	_ = g.Each(func(b Block) {
		if _, ok := b.Options[option]; ok {
			all = append(all, b)
		}
	})
	return all
}

// ofSite are directives and options of Caddy's that are looked for in our blocks, with what is written in the site.
var ofSite = map[string]string{
	"client_auth": "tls { client_auth { ... } }", "trust_pool": "tls { client_auth { trust_pool ... } }",
	"basic_auth": "basic_auth { ... }", "forward_auth": "forward_auth <url> { ... }", "bind": "bind <address>",
	"respond": "respond <status>", "handle": "handle { ... }", "log": "log", "encode": "encode gzip",
	"reverse_proxy": "reverse_proxy <url>",
}

// misplaced is the error about an option that is not known in the block at path, which knows others: where it belongs,
// or which other one was probably meant.
func (g *Grammar) misplaced(path []string, option string, known Options) string {
	if is := g.gone(path, option); is != "" {
		return is
	}
	here, quoted := path[len(path)-1], strconv.Quote(option)
	if write, ok := ofSite[option]; ok || strings.HasPrefix(option, "aip_") {
		if write == "" {
			write = option
		}
		return quoted + " belongs into the site, beside " + path[0] + ": write " + write
	}
	all := g.homes(option)
	if len(all) == 0 {
		return "there is no " + quoted + " in " + here + Nearest(option, known)
	}
	root := path[0]
	same := func(b Block) bool { return b.Path[0] == root }
	around := func(b Block) bool { return len(b.Path) < len(path) && slices.Equal(b.Path, path[:len(b.Path)]) }
	for _, nearer := range []func(Block) bool{same, around} {
		if slices.ContainsFunc(all, nearer) {
			all = slices.DeleteFunc(all, func(b Block) bool { return !nearer(b) })
		}
	}
	var names []string
	for _, b := range all {
		name := b.Path[len(b.Path)-1]
		if b.Path[0] == "aip" && root != "aip" {
			name = "the global option aip"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	written := all[0].Written
	if all[0].Path[0] == root && len(written) > 1 {
		written = written[1:]
	}
	return quoted + " belongs into " + shown.OneOf(names) + ": write " + strings.Join(written, " { ") + " { " +
		option + " ..." + strings.Repeat(" }", len(written))
}
