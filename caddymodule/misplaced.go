// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// allBlocks has every block of the directive aip_gateway and of the global option aip, once: what client_cert_header
// has in common with the option stands in the option. Which options a block has, the parser alone says: it reads this
// text.
const allBlocks = `aip_gateway {
	agent a2a <url> {
		caller {
			jwt {
			}
		}
		tls {
		}
	}
	identity required {
		client_cert_header <name> <form> from <address> {
		}
		jwt {
		}
		oidc <issuer> {
		}
		keys <file> {
		}
	}
	aac {
	}
	policy {
		allow {
		}
		deny {
		}
		decide <url> {
		}
	}
	quota <name> {
	}
	timeouts {
	}
	limits {
	}
	card {
	}
	group {
		inbox <url> {
		}
		tls {
		}
	}
}
aip {
	store pebble <directory> {
	}
	store memory {
	}
	store jetstream <url> {
		tls {
		}
	}
	notify {
	}
	streams {
	}
	connections {
	}
	traces {
	}
	aun {
		limits {
		}
	}
	issuer <name> {
	}
	revocation {
		ocsp query {
		}
		acps <url> {
		}
		registry <url> {
		}
	}
	registry <url> {
	}
	certificates <directory> {
	}
	amp <directory> {
	}
	discovery <url> {
	}
	find {
		registry <url> {
		}
		discovery <url> {
		}
	}
}
`

// ofSite are directives and options of Caddy's that are looked for in our blocks, with what is written in the site.
var ofSite = map[string]string{
	"client_auth": "tls { client_auth { ... } }", "trust_pool": "tls { client_auth { trust_pool ... } }",
	"basic_auth": "basic_auth { ... }", "forward_auth": "forward_auth <url> { ... }", "bind": "bind <address>",
	"respond": "respond <status>", "handle": "handle { ... }", "log": "log", "encode": "encode gzip",
	"reverse_proxy": "reverse_proxy <url>",
}

// home is a block that has an option.
type home struct {
	path []string // the names of the blocks, from the directive on
	open []string // as they are written
}

// homes returns the blocks that have an option.
func homes(option string) (all []home) {
	tokens, err := caddyfile.Tokenize([]byte(allBlocks), "")
	if err != nil {
		return nil
	}
	p := &parser{Dispenser: caddyfile.NewDispenser(tokens)}
	lines, open := strings.Split(allBlocks, "\n"), []string(nil)
	p.open = func(path []string, known options) {
		open = append(open[:len(path)-1], strings.TrimSuffix(strings.TrimSpace(lines[p.Line()-1]), " {"))
		if _, ok := known[option]; ok {
			all = append(all, home{slices.Clone(path), slices.Clone(open)})
		}
	}
	new(Gateway).read(p)
	new(App).readFrom(p)
	return all
}

// misplaced is the error about an option that is not known in the block at path, which knows others: where it belongs,
// or which other one was probably meant.
func misplaced(path []string, option string, known options) string {
	here, quoted := path[len(path)-1], strconv.Quote(option)
	if write, ok := ofSite[option]; ok || strings.HasPrefix(option, "aip_") {
		if write == "" {
			write = option
		}
		return quoted + " belongs into the site, beside " + path[0] + ": write " + write
	}
	all := homes(option)
	if len(all) == 0 {
		return "there is no " + quoted + " in " + here + nearest(option, known)
	}
	root := path[0]
	same := func(h home) bool { return h.path[0] == root }
	if slices.ContainsFunc(all, same) {
		all = slices.DeleteFunc(all, func(h home) bool { return !same(h) })
	}
	var names []string
	for _, h := range all {
		name := h.path[len(h.path)-1]
		if h.path[0] == "aip" && root != "aip" {
			name = "the global option aip"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	open := all[0].open
	if all[0].path[0] == root && len(open) > 1 {
		open = open[1:]
	}
	return quoted + " belongs into " + oneOf(names) + ": write " + strings.Join(open, " { ") + " { " + option + " ..." +
		strings.Repeat(" }", len(open))
}
