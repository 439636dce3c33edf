// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/checkout"
)

// rooms are the folders with code at the root, from the bottom of the house to its top, each with the rooms that it may
// import: only rooms before it. Within a room packages import each other as Go allows.
var rooms = []struct {
	name      string
	mayImport []string
}{
	{"task", nil}, // the standard library only
	{"internal", []string{"task"}},
	{"identity", []string{"task", "internal"}},
	{"aun", []string{"internal"}},
	{"sseproxy", []string{"internal"}},
	{"replay", []string{"task", "internal"}},
	{"translate", []string{"task", "internal", "aun"}}, // of aun the codes of errors
	{"partner", []string{"task", "internal", "replay"}},
	{"upstream", []string{"task", "internal", "aun", "sseproxy", "translate", "partner"}},
	{"notify", []string{"task", "internal", "replay", "translate", "partner"}},
	{"acps", []string{"internal", "identity", "translate"}},
	{"trust", []string{"task", "internal", "identity", "replay", "acps"}},
	{"gateway", []string{"task", "internal", "identity", "aun", "replay", "translate", "partner", "upstream", "notify",
		"trust"}},
	{"front", []string{"task", "internal", "identity", "aun", "sseproxy", "replay", "translate", "partner", "acps",
		"trust", "gateway"}},
	{"cluster", []string{"task", "internal", "replay", "partner", "gateway"}},
	{"node", []string{"task", "internal", "identity", "aun", "replay", "translate", "partner", "upstream", "notify",
		"acps", "trust", "gateway", "front"}},
	{"operator", []string{"task", "internal", "identity", "sseproxy", "replay", "translate", "partner", "notify", "acps",
		"trust", "gateway", "front", "node"}},
	{"caddymodule", []string{"task", "internal", "identity", "aun", "replay", "translate", "partner",
		"upstream", "notify", "acps", "trust", "gateway", "front", "cluster", "node", "operator"}},
	{
		"cli", []string{"task", "internal", "identity", "aun", "sseproxy", "replay", "translate", "notify", "acps",
			"trust",
			"operator", "caddymodule"}},
	{"", []string{"caddymodule", "cli"}},
	{"docs", nil},
	{"contrib", nil},
	// Its modules are no part of this one. The fixtures of end-to-end tests import clients, and formats of the admin API.
	{"test", []string{"task", "internal", "identity", "sseproxy", "replay", "operator", "cli"}},
}

// outside says which rooms may import a package from elsewhere that shapes what it touches.
var outside = map[string][]string{
	"github.com/caddyserver/": {"caddymodule", "caddymodule/accesslog", "caddymodule/acps",
		"caddymodule/agents", "caddymodule/bounds", "caddymodule/cards", "caddymodule/certfile",
		"caddymodule/conf", "caddymodule/conf/conftest", "caddymodule/doctor", "caddymodule/pki",
		"caddymodule/proof", "caddymodule/rules", "caddymodule/store", "caddymodule/storefiles",
		"caddymodule/storejetstream", "caddymodule/storememory", "caddymodule/storepebble", "caddymodule/webhooks",
		"cli"},
	"go.uber.org/zap": {"caddymodule", "caddymodule/accesslog"},
	"github.com/prometheus/": {"caddymodule", "caddymodule/metric", "caddymodule/metric/metrictest",
		"caddymodule/nodemetrics", "caddymodule/pki", "caddymodule/store", "caddymodule/storejetstream",
		"caddymodule/storepebble"},
	"github.com/cockroachdb/": {"replay/pebble", "replay/pebble/disk", "replay/pebble/wal",
		"replay/pebble/wal/segment"},
	"github.com/hashicorp/golang-lru/": {"trust/authn", "upstream/assignee", "upstream/callback", "partner", "notify",
		"notify/schedule", "upstream/auntransport", "trust/policy/decide", "replay/jetstream"},
	"github.com/coder/websocket": {"aun", "aun/auntest", "front/aunfront", "internal/aunpeer",
		"internal/browser"},
	"github.com/go-jose/go-jose/": {"aun", "trust/token", "trust/token/tokentest", "upstream/callerinfo"},
	"github.com/nats-io/":         {"replay/jetstream", "cluster/natsdriver", "caddymodule/storejetstream"},
	"github.com/synadia-io/":      {"replay/jetstream"},
	"github.com/rabbitmq/":        {"front/group/broker", "test/e2e/site"},
	"github.com/tidwall/gjson": {"trust/aac", "trust/authn", "internal/jsonrpc", "trust/policy",
		"trust/policy/decide", "aun", "front/aunfront/directory", "front/aunfront", "caddymodule/conf",
		"front/aunfront/mailbox", "node", "trust/token", "upstream/assignee", "upstream/httptransport",
		"translate/agentapi", "translate/aip", "translate/aun", "translate/internal/wire", "translate/a2a",
		"translate/a2a/legacy", "translate/a2a/v03", "translate/a2a/v1", "translate/translatetest",
		"translate/a2a/internal/extension", "translate/a2a/internal/part", "translate/a2a/internal/reply",
		"translate/a2a/internal/rpc", "translate/a2a/internal/status", "translate/a2a/internal/webhook",
		"cli/leader", "upstream/auntransport", "caddymodule/storejetstream", "test/e2e/site"},
	"go.opentelemetry.io/": {"front/group", "internal/tracing", "internal/measure",
		"caddymodule/nodemetrics", "node",
		"partner", "gateway",
		"front/httpfront", "upstream/httptransport", "upstream/grpctransport", "notify",
		"notify/delivery"},
	"net/http": {"acps/adp", "trust/authn", "front/aunfront/directory", "front/aunfront", "front/httpfront",
		"front/httpfront/takeover", "upstream/httptransport", "upstream/grpctransport", "upstream/discovery",
		"upstream/callback", "notify", "notify/delivery", "sseproxy", "aun/auntest", "internal/aunpeer",
		"internal/tracing", "caddymodule", "caddymodule/accesslog", "caddymodule/acps", "caddymodule/doctor",
		"cli",
		"caddymodule/console", "cli/leader",
		"internal/legacyagent", "aun", "trust/token", "trust/token/tokentest", "trust/policy/decide",
		"trust/revocation", "acps/registry", "acps/registry/registrytest", "internal/natstest", "acps/agentca",
		"operator", "operator/adminapi", "acps/agentca/catest", "internal/retryafter", "internal/openapitest",
		"internal/gunzip", "node", "contrib/webhooks", "caddymodule/agents", "caddymodule/pki",
		"caddymodule/storejetstream", "test/e2e/site"},
}

func TestImports(t *testing.T) {
	allowed, above := make(map[string][]string), make(map[string]bool)
	for _, room := range slices.Backward(rooms) {
		for _, other := range room.mayImport {
			if above[other] {
				t.Errorf("%s may import %s, which is above it", room.name, other)
			}
		}
		allowed[room.name], above[room.name] = room.mayImport, true
	}
	module := strings.TrimSpace(run(t, "go", "list", "-m"))
	used := make(map[[2]string]bool) // a room and a room, or a package and a prefix of outside
	found := make(map[string]bool)
	for line := range strings.Lines(run(t, "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		pkg = strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		room := roomOf(pkg)
		found[room], found[pkg] = true, true
		if _, known := allowed[room]; !known {
			t.Errorf("the room %q is not in the layout", room)
			continue
		}
		for imported := range strings.FieldsSeq(imports) {
			if rest, ours := strings.CutPrefix(imported, module); ours {
				other := roomOf(strings.TrimPrefix(rest, "/"))
				used[[2]string{room, other}] = true
				if other != room && !slices.Contains(allowed[room], other) {
					t.Errorf("%s imports %s, which the layout does not allow", pkg, imported)
				}
				continue
			}
			for prefix, permitted := range outside {
				if !strings.HasPrefix(imported, prefix) {
					continue
				}
				used[[2]string{pkg, prefix}] = true
				if !slices.Contains(permitted, pkg) {
					t.Errorf("%s imports %s, which only %v may", pkg, imported, permitted)
				}
			}
			if room == "task" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
				t.Errorf("%s imports %s, but may import the standard library only", pkg, imported)
			}
		}
	}
	unused(t, found, used)
}

// roomOf returns the folder at the root in which a package is.
func roomOf(pkg string) string {
	room, _, _ := strings.Cut(pkg, "/")
	return room
}

// unused reports permissions that nothing uses, and rooms that do not exist.
func unused(t *testing.T, found map[string]bool, used map[[2]string]bool) {
	t.Helper()
	for _, room := range rooms {
		if !found[room.name] {
			t.Errorf("the layout has a room %q that does not exist", room.name)
		}
		for _, other := range room.mayImport {
			if !used[[2]string{room.name, other}] {
				t.Errorf("the layout allows %s to import %s, which it does not", room.name, other)
			}
		}
	}
	for prefix, permitted := range outside {
		for _, pkg := range permitted {
			if !used[[2]string{pkg, prefix}] {
				t.Errorf("the layout allows %s to import %s…, which it does not", pkg, prefix)
			}
		}
	}
}

// TestSleepsAreSeen: a test that only lets time pass says so by time.Sleep, and not by a channel that nobody sends to.
func TestSleepsAreSeen(t *testing.T) {
	disguised := regexp.MustCompile(`(?m)^\s*<-time\.After\(`)
	for _, file := range checkout.Files(t, "*_test.go") {
		if text, err := os.ReadFile(file); err == nil && disguised.Match(text) {
			t.Errorf("%s waits for time.After alone; use time.Sleep, or wait for what happens", file)
		}
	}
}

// TestOneFileKnowsTheDriver: of the host and its rooms, one file imports the driver on disk. All others use the
// contract of drivers, or a small interface.
func TestOneFileKnowsTheDriver(t *testing.T) {
	var found []string
	for _, file := range checkout.Files(t, "caddymodule/*.go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
			return strings.HasSuffix(i.Path.Value, `/replay/pebble"`)
		}) {
			found = append(found, file)
		}
	}
	if !slices.Equal(found, []string{"caddymodule/storepebble/storepebble.go"}) {
		t.Errorf("the driver pebble is imported by %v", found)
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

// hosts are the folders that may name options of the Caddyfile: the host, writers of Caddyfiles for it, and the help of
// the commands.
var hosts = []string{"caddymodule", "operator/adminapi", "cli", "docs", "test"}

// TestNoCaddyfileWords: the core names no option of the Caddyfile in its messages, since it may have another host. It
// returns typed errors, and caddymodule names the option to change. Of the options, those with an underscore count: all
// others (agent, timeout, store) are words of ordinary English, or of the protocols, too. A literal that is nothing but
// an option is no message: limits have their names on the wire (data.limit) and in the attributes of log lines.
func TestNoCaddyfileWords(t *testing.T) {
	words := optionsOf(t)
	if len(words) < 20 {
		t.Errorf("only %d options were found", len(words))
	}
	// Options of Caddy's own.
	words = append(words, "client_auth", "trust_pool", "require_and_verify", "verify_if_given", "handle_path")
	option := regexp.MustCompile(`\b(` + strings.Join(words, "|") + `)\b`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(hosts, path) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		eachNode(t, path, func(n ast.Node) {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if word := option.FindString(lit.Value); word != "" && lit.Value != strconv.Quote(word) {
					t.Errorf("%s names %s, an option of the Caddyfile, in %s", path, word, lit.Value)
				}
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// optionsOf returns the options in the tables of caddymodule that have an underscore, and its directives.
func optionsOf(t *testing.T) (words []string) {
	t.Helper()
	tables := func(n ast.Node) {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return
		}
		if name, ok := table.Type.(*ast.SelectorExpr); !ok || name.Sel.Name != "Options" {
			return
		}
		for _, e := range table.Elts {
			key, err := strconv.Unquote(e.(*ast.KeyValueExpr).Key.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(key, "_") {
				words = append(words, key)
			}
		}
	}
	for _, name := range []string{"caddyfile", "store/store", "storepebble/storepebble", "storememory/storememory"} {
		eachNode(t, "caddymodule/"+name+".go", tables)
	}
	return append(words, "aip_gateway", "aip_aun", "aip_callback", "aip_console", "aip_discovery", "aip_health",
		"aip_identify", "aip_method", "aip_sample_agent")
}

func eachNode(t *testing.T, path string, f func(ast.Node)) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		f(n)
		return true
	})
}

// TestLines holds lines of Go to 120 bytes.
func TestLines(t *testing.T) {
	for _, file := range checkout.Files(t, "*.go", ":!:**/testdata/**") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(content)) {
			n++
			if length := len(strings.TrimRight(line, "\r\n")); length > 120 {
				t.Errorf("%s:%d has %d bytes", file, n, length)
			}
		}
	}
}
