// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mayImport says which of our rooms a room may import, by the first elements of their paths. A room that is
// not here fails the test, so that a new one is thought about.
var mayImport = map[string][]string{
	"":                        {"caddymodule"},
	"task":                    {},
	"agent":                   {"task"},
	"jsonrpc":                 {},
	"translate":               {"task", "agent", "jsonrpc"},
	"translate/aip":           {"task", "agent", "jsonrpc", "translate"},
	"translate/a2a":           {"task", "agent", "jsonrpc", "translate"},
	"translate/translatetest": {"task", "jsonrpc", "translate"},
	"replay":                  {},
	"replay/pebble":           {"replay"},
	"replay/replaytest":       {"replay"},
	"quota":                   {},
	"partner":                 {"task", "agent", "replay", "quota"},
	"upstream":                {"task", "agent", "translate", "partner", "sseproxy"},
	"sseproxy":                {"task", "replay"},
	"identity":                {"task", "quota"},
	"notify":                  {"task", "translate", "replay", "quota", "partner", "egress", "notify/sign"},
	"egress":                  {},
	"notify/sign":             {},
	"gateway":                 {"task", "jsonrpc", "translate", "replay", "quota", "partner", "notify", "sseproxy", "identity", "upstream"},
	"caddymodule": {"task", "jsonrpc", "translate", "translate/aip", "translate/a2a", "replay", "replay/pebble", "quota",
		"partner", "notify", "egress", "notify/sign", "upstream", "identity", "gateway", "internal/legacyagent",
		"caddymodule/adminapi", "caddymodule/command"},
	"caddymodule/adminapi": {"task", "notify"},
	"caddymodule/command": {"task", "identity", "notify/sign", "internal/devpki", "internal/leader",
		"internal/legacyagent", "caddymodule/adminapi"},
	"internal/devpki":      {"identity"},
	"internal/leader":      {"task", "jsonrpc", "translate/aip", "sseproxy"},
	"internal/legacyagent": {"task", "jsonrpc"},
	"bench":                {"task", "agent", "jsonrpc", "translate", "translate/aip", "translate/a2a", "replay", "replay/pebble", "partner", "notify", "egress", "internal/devpki"},
	"soak":                 {"task", "identity", "internal/devpki", "internal/leader", "internal/legacyagent"},
	"e2e":                  {},
}

// outside says which rooms may import a package from elsewhere that shapes what it touches.
var outside = map[string][]string{
	"github.com/caddyserver/":          {"caddymodule", "caddymodule/command"},
	"go.uber.org/zap":                  {"caddymodule"},
	"github.com/cockroachdb/":          {"replay/pebble"},
	"github.com/hashicorp/golang-lru/": {"replay"},
	"github.com/tidwall/gjson":         {"jsonrpc", "upstream", "translate/aip", "translate/a2a", "internal/leader", "internal/legacyagent"},
	"go.opentelemetry.io/":             {"partner", "gateway", "upstream", "notify"},
	"net/http": {"gateway", "upstream", "notify", "sseproxy", "caddymodule", "caddymodule/command",
		"internal/leader", "internal/legacyagent", "bench", "soak", "e2e"},
}

func TestWhoMayImportWhom(t *testing.T) {
	module := strings.TrimSpace(run(t, "go", "list", "-m"))
	for line := range strings.Lines(run(t, "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		room := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		allowed, known := mayImport[room]
		if !known {
			t.Errorf("the room %q is not in the layout", room)
			continue
		}
		for imported := range strings.FieldsSeq(imports) {
			if rest, ours := strings.CutPrefix(imported, module); ours {
				if other := strings.TrimPrefix(rest, "/"); !slices.Contains(allowed, other) {
					t.Errorf("%s imports %s, which the layout does not allow", room, other)
				}
				continue
			}
			for prefix, rooms := range outside {
				if strings.HasPrefix(imported, prefix) && !slices.Contains(rooms, room) {
					t.Errorf("%s imports %s, which only %v may", room, imported, rooms)
				}
			}
			if room == "task" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
				t.Errorf("task imports %s, but may import the standard library only", imported)
			}
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}
