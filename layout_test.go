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

// mayImport lists, for each room (a package, by its path in the module), which other rooms it may import. A room that
// is missing here fails the test, and so does a permission that no import uses. The modules below this one (bench,
// release, soak) are no rooms: nothing here can import them.
var mayImport = map[string][]string{
	"":                        {"caddymodule", "cli"},
	"task":                    {},
	"agent":                   {"task"},
	"dialect":                 {},
	"jsonrpc":                 {},
	"translate":               {"task", "agent", "dialect", "jsonrpc"},
	"translate/aip":           {"task", "agent", "jsonrpc", "translate", "translate/internal/wire"},
	"translate/aip/acs":       {"translate", "translate/internal/wire", "internal/endpoint"},
	"translate/agentapi":      {"task", "agent", "dialect", "jsonrpc", "translate", "translate/internal/wire"},
	"translate/aun":           {"task", "agent", "aun/codes", "jsonrpc", "translate", "translate/internal/wire"},
	"translate/internal/wire": {"task", "jsonrpc", "translate"},
	"translate/translatetest": {"task", "agent", "jsonrpc", "translate"},

	"translate/a2a": {"task", "jsonrpc", "translate", "translate/internal/wire", "translate/a2a/legacy",
		"translate/a2a/v03", "translate/a2a/v1", "translate/a2a/internal/version"},
	"translate/a2a/legacy": {"task", "agent", "jsonrpc", "translate", "translate/internal/wire",
		"translate/a2a/internal/extension", "translate/a2a/internal/message", "translate/a2a/internal/part",
		"translate/a2a/internal/reply", "translate/a2a/internal/rpc", "translate/a2a/internal/status",
		"translate/a2a/internal/version", "translate/a2a/internal/webhook"},
	"translate/a2a/v03": {"task", "agent", "jsonrpc", "translate", "translate/internal/wire", "translate/a2a/v1",
		"translate/a2a/internal/extension", "translate/a2a/internal/message", "translate/a2a/internal/part",
		"translate/a2a/internal/reply", "translate/a2a/internal/rpc", "translate/a2a/internal/status",
		"translate/a2a/internal/version", "translate/a2a/internal/webhook"},
	"translate/a2a/v1": {"task", "agent", "jsonrpc", "translate", "translate/internal/wire",
		"translate/a2a/internal/extension", "translate/a2a/internal/message", "translate/a2a/internal/part",
		"translate/a2a/internal/reply", "translate/a2a/internal/status", "translate/a2a/internal/version"},
	"translate/a2a/internal/a2atest": {"task", "agent", "jsonrpc", "translate", "translate/a2a",
		"translate/translatetest"},
	"translate/a2a/internal/extension": {"task", "translate/internal/wire"},
	"translate/a2a/internal/message": {"task", "agent", "translate", "translate/internal/wire",
		"translate/a2a/internal/extension"},
	"translate/a2a/internal/part": {"task", "jsonrpc", "translate/internal/wire",
		"translate/a2a/internal/extension"},
	"translate/a2a/internal/reply": {"task", "agent", "jsonrpc", "translate", "translate/internal/wire"},
	"translate/a2a/internal/rpc": {"task", "jsonrpc", "translate", "translate/internal/wire",
		"translate/a2a/internal/part", "translate/a2a/internal/version"},
	"translate/a2a/internal/status":  {"task", "agent", "translate/internal/wire", "translate/a2a/internal/extension"},
	"translate/a2a/internal/version": {},
	"translate/a2a/internal/webhook": {"jsonrpc", "task", "translate", "translate/internal/wire"},

	"replay":    {},
	"model":     {},
	"shard":     {"replay", "internal/lockorder"},
	"shard/ask": {"task", "replay", "shard"},

	"cluster":             {"replay", "shard", "internal/lockorder", "internal/measure"},
	"cluster/clustertest": {"cluster", "replay"},
	"cluster/natsdriver":  {"cluster", "replay", "replay/jetstream"},
	"cluster/handover":    {"cluster", "gateway", "partner", "quota", "replay", "shard/ask", "task"},

	"replay/pebble": {"replay", "replay/pebble/disk", "replay/pebble/wal", "internal/keylock",
		"internal/measure"},
	"replay/jetstream": {"replay", "internal/measure"},

	"replay/pebble/wal":         {"replay/pebble/disk", "replay/pebble/wal/segment", "internal/measure"},
	"replay/pebble/wal/segment": {},
	"replay/pebble/disk":        {"replay"},
	"replay/replaytest":         {"replay", "shard", "internal/bubble"},
	"follow":                    {"task", "replay"},
	"quota":                     {},
	"aac": {"jsonrpc", "task", "identity", "token", "policy", "replay", "shard", "shard/ask",
		"internal/logname"},
	"policy": {"jsonrpc", "task", "identity", "quota", "replay", "shard", "shard/ask",
		"internal/logname"},
	"standing": {"replay", "shard", "shard/ask", "internal/logname"},
	"partner": {"task", "agent", "dialect", "replay", "quota", "internal/keylock", "internal/lockorder",
		"internal/tracing", "internal/logname", "internal/measure", "internal/bug"},
	"aun":       {"aun/codes", "jsonrpc", "internal/bufpool", "internal/bug", "internal/pemtext"},
	"aun/codes": {"jsonrpc"},
	"directory": {"aun", "aun/codes", "catalog", "translate", "translate/aun"},
	"mailbox": {"task", "aun", "aun/codes", "translate/aun", "replay", "shard", "shard/ask", "follow", "partner",
		"identity", "gateway", "internal/keylock", "internal/logname"},
	"aun/auntest": {"aun"},
	"upstream":    {"task", "agent", "translate", "partner", "internal/bug"},
	"upstream/httptransport": {"task", "translate", "upstream", "sseproxy", "internal/tracing", "internal/bufpool",
		"internal/http1", "internal/gunzip"},
	"upstream/discovery": {"task", "translate", "upstream", "upstream/httptransport", "internal/gunzip"},
	"upstream/grpctransport": {"task", "translate", "agent", "upstream", "upstream/httptransport",
		"internal/tracing", "internal/protobytes"},
	"upstream/callback":     {"task", "agent", "upstream"},
	"upstream/assignee":     {"task", "translate", "translate/aun", "upstream"},
	"upstream/auntransport": {"task", "aun", "aun/codes", "jsonrpc", "translate", "translate/aun", "upstream"},
	"upstream/upstreamtest": {},
	"sseproxy":              {"internal/bufpool"},
	"agentca":               {"internal/retryafter", "internal/pemtext", "internal/gunzip"},
	"agentca/catest":        {"internal/openapitest"},
	"identity":              {"task", "quota"},
	"token/tokentest":       {},
	"onbehalf":              {"agent", "translate", "upstream", "quota", "internal/pemtext"},
	"authn":                 {"jsonrpc", "identity", "task", "token", "internal/fewlines", "internal/pemtext"},
	"token":                 {"identity", "egress", "jsonrpc"},
	"revocation":            {"registry", "internal/retryafter", "internal/pemtext", "internal/gunzip"},
	"registry":              {"internal/endpoint", "internal/retryafter", "internal/gunzip"},
	"find":                  {"registry", "adp"},
	"registry/registrytest": {"internal/openapitest"},
	"notify": {"task", "translate", "replay", "follow", "quota", "partner", "egress", "notify/delivery",
		"notify/schedule", "notify/sign", "internal/keylock", "internal/logname", "internal/tracing"},
	"notify/delivery": {"egress", "notify/sign", "internal/tracing", "internal/bug", "internal/retryafter"},
	"notify/schedule": {"replay", "notify/delivery"},
	"egress":          {},
	"group": {"task", "translate/aip", "replay", "follow", "shard", "shard/ask", "partner", "egress", "gateway",
		"group/broker", "internal/logname", "internal/tracing", "identity", "jsonrpc", "quota", "internal/bug",
		"internal/fewlines"},
	"group/broker":         {"egress"},
	"internal/logname":     {"quota", "replay"},
	"internal/tracing":     {"task"},
	"notify/sign":          {},
	"notify/sign/signtest": {},
	"policy/decide":        {"identity", "jsonrpc", "egress", "policy", "quota", "internal/gunzip"},
	"gateway": {"aac", "task", "jsonrpc", "translate", "replay", "shard", "shard/ask", "quota", "policy",
		"partner", "notify",
		"identity",
		"upstream",
		"upstream/httptransport", "upstream/grpctransport", "upstream/discovery", "upstream/callback",
		"upstream/assignee", "translate/aip", "translate/aip/acs", "translate/a2a", "translate/agentapi", "translate/aun",
		"internal/tracing", "internal/bufpool", "internal/logname", "upstream/auntransport", "aun",
		"internal/measure", "internal/bug", "internal/fewlines"},
	"gateway/httpfront": {"task", "translate", "gateway", "gateway/httpfront/takeover", "identity", "sseproxy",
		"internal/bufpool", "internal/protobytes"},
	"gateway/httpfront/takeover": {"internal/bufpool"},
	"gateway/wsfront": {"task", "jsonrpc", "policy", "aun", "aun/codes", "gateway", "identity", "partner", "replay",
		"shard", "shard/ask", "follow", "translate/aun", "quota", "internal/keylock", "internal/lockorder",
		"internal/logname"},
	"amp":     {},
	"catalog": {"translate"},
	"adp":     {"catalog", "identity", "translate/aip/acs"},
	"caddymodule": {"aac", "adp", "agentca", "amp", "catalog", "authn", "token", "task", "dialect", "jsonrpc",
		"translate", "aun", "aun/codes",
		"translate/aip", "translate/aip/acs", "internal/heap",
		"internal/fewlines", "internal/pemtext", "internal/procs", "internal/tracing",
		"translate/a2a",
		"translate/agentapi",
		"translate/aun", "directory", "gateway/wsfront", "mailbox", "replay", "replay/pebble", "shard",
		"shard/ask", "quota", "policy", "policy/decide", "standing", "revocation", "registry", "find", "upstream/discovery",
		"partner",
		"notify", "egress", "notify/sign", "upstream", "upstream/callback", "upstream/httptransport", "identity", "gateway",
		"gateway/httpfront", "group", "onbehalf", "sseproxy", "internal/legacyagent", "internal/measure",
		"internal/build", "operator/adminapi", "caddymodule/conf", "caddymodule/console",
		"caddymodule/doctor", "operator/history",
		"operator/survey",
		"caddymodule/storefiles", "cluster", "cluster/handover", "cluster/natsdriver", "node", "replay/jetstream"},
	"node": {"aac", "amp", "aun", "catalog", "directory", "gateway", "gateway/wsfront", "group", "mailbox", "partner",
		"policy", "registry", "replay", "shard", "shard/ask", "standing", "task", "token", "translate",
		"upstream/callback"},
	"caddymodule/conf":       {},
	"caddymodule/console":    {"operator/adminapi"},
	"caddymodule/doctor":     {"task", "identity", "internal/pemtext"},
	"caddymodule/storefiles": {"replay"},
	"operator/adminapi":      {"task", "notify", "internal/measure"},
	"operator/history":       {"internal/measure"},
	"operator/survey":        {"task", "replay", "internal/logname", "operator/adminapi"},
	"cli": {"task", "authn", "identity", "notify/sign", "internal/devpki", "internal/leader", "internal/legacyagent",
		"operator/adminapi", "caddymodule/console", "caddymodule/doctor", "caddymodule/storefiles", "operator/survey", "aun",
		"sseproxy",
		"replay", "translate/aip/acs", "find", "registry", "adp", "internal/build", "internal/endpoint"},
	"internal/asynctest":   {},
	"internal/fewlines":    {},
	"internal/pemtext":     {},
	"internal/bubble":      {},
	"internal/checkout":    {},
	"internal/freeport":    {},
	"internal/endpoint":    {},
	"internal/openapitest": {},
	"internal/guidetest":   {},
	"internal/aunpeer":     {},
	"internal/browser":     {},
	"internal/bug":         {},
	"internal/build":       {},
	"internal/bufpool":     {},
	"internal/http1":       {},
	"internal/gunzip":      {},
	"internal/protobytes":  {},
	"internal/retryafter":  {},
	"internal/heap":        {},
	"internal/procs":       {},
	"internal/keylock":     {},
	"internal/lockorder":   {},
	"internal/measure":     {},
	"internal/devpki":      {"identity"},
	"internal/leader":      {"task", "jsonrpc", "sseproxy", "internal/endpoint"},
	"internal/legacyagent": {"task", "jsonrpc", "internal/bufpool"},
	"internal/natstest":    {"internal/freeport"},
	"internal/rabbittest":  {"internal/freeport"},
	"docs":                 {},
	"e2e":                  {},
}

// outside says which rooms may import a package from elsewhere that shapes what it touches.
var outside = map[string][]string{
	"github.com/caddyserver/": {"caddymodule", "caddymodule/conf", "caddymodule/doctor", "caddymodule/storefiles", "cli"},
	"go.uber.org/zap":         {"caddymodule"},
	"github.com/prometheus/":  {"caddymodule"},
	"github.com/cockroachdb/": {"replay/pebble", "replay/pebble/disk", "replay/pebble/wal",
		"replay/pebble/wal/segment"},
	"github.com/hashicorp/golang-lru/": {"authn", "upstream/assignee", "upstream/callback", "partner", "notify",
		"notify/schedule", "upstream/auntransport", "upstream", "policy/decide"},
	"github.com/coder/websocket": {"aun", "aun/auntest", "gateway/wsfront", "internal/aunpeer",
		"internal/browser"},
	"github.com/go-jose/go-jose/": {"aun", "token", "token/tokentest", "onbehalf"},
	"github.com/nats-io/":         {"replay/jetstream", "cluster/natsdriver", "caddymodule"},
	"github.com/synadia-io/":      {"replay/jetstream"},
	"github.com/rabbitmq/":        {"group/broker"},
	"github.com/tidwall/gjson": {"aac", "authn", "jsonrpc", "policy", "policy/decide", "aun", "directory",
		"gateway/wsfront",
		"caddymodule", "mailbox",
		"token", "upstream/assignee", "upstream/httptransport", "translate/agentapi", "translate/aip", "translate/aun",
		"translate/internal/wire", "translate/a2a", "translate/a2a/legacy", "translate/a2a/v03", "translate/a2a/v1",
		"translate/translatetest", "translate/a2a/internal/extension", "translate/a2a/internal/part",
		"translate/a2a/internal/reply", "translate/a2a/internal/rpc", "translate/a2a/internal/status",
		"translate/a2a/internal/webhook", "internal/leader", "upstream/auntransport"},
	"go.opentelemetry.io/": {"group", "internal/tracing", "internal/measure", "caddymodule", "node", "partner", "gateway",
		"gateway/httpfront", "onbehalf", "upstream/httptransport", "upstream/grpctransport", "notify", "notify/delivery"},
	"net/http": {"adp", "authn", "directory", "gateway/wsfront", "gateway/httpfront", "gateway/httpfront/takeover",
		"upstream/httptransport", "upstream/grpctransport", "upstream/discovery", "upstream/callback", "notify",
		"notify/delivery", "sseproxy", "aun/auntest", "internal/aunpeer", "internal/tracing", "caddymodule",
		"cli", "caddymodule/console", "internal/leader", "internal/legacyagent", "aun", "token", "token/tokentest",
		"policy/decide", "revocation", "registry", "registry/registrytest", "internal/natstest", "agentca",
		"agentca/catest", "internal/retryafter", "internal/openapitest", "internal/gunzip", "node"},
}

func TestImports(t *testing.T) {
	module := strings.TrimSpace(run(t, "go", "list", "-m"))
	used := make(map[[2]string]bool) // room and what it imports: a room of ours, or a prefix of outside
	rooms := make(map[string]bool)
	for line := range strings.Lines(run(t, "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")) {
		pkg, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		room := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
		rooms[room] = true
		allowed, known := mayImport[room]
		if !known {
			t.Errorf("the room %q is not in the layout", room)
			continue
		}
		for imported := range strings.FieldsSeq(imports) {
			if rest, ours := strings.CutPrefix(imported, module); ours {
				other := strings.TrimPrefix(rest, "/")
				used[[2]string{room, other}] = true
				if !slices.Contains(allowed, other) {
					t.Errorf("%s imports %s, which the layout does not allow", room, other)
				}
				continue
			}
			for prefix, permitted := range outside {
				if !strings.HasPrefix(imported, prefix) {
					continue
				}
				used[[2]string{room, prefix}] = true
				if !slices.Contains(permitted, room) {
					t.Errorf("%s imports %s, which only %v may", room, imported, permitted)
				}
			}
			if room == "task" && strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
				t.Errorf("task imports %s, but may import the standard library only", imported)
			}
		}
	}
	unused(t, rooms, used)
}

// unused reports permissions that nothing uses, and rooms that do not exist.
func unused(t *testing.T, rooms map[string]bool, used map[[2]string]bool) {
	t.Helper()
	for room, allowed := range mayImport {
		if !rooms[room] {
			t.Errorf("the layout has a room %q that does not exist", room)
		}
		for _, other := range allowed {
			if !used[[2]string{room, other}] {
				t.Errorf("the layout allows %s to import %s, which it does not", room, other)
			}
		}
	}
	for prefix, permitted := range outside {
		for _, room := range permitted {
			if !used[[2]string{room, prefix}] {
				t.Errorf("the layout allows %s to import %s…, which it does not", room, prefix)
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

// TestOneFileKnowsTheDriver: of the host, one file imports the driver on disk. All others use what drivers have in
// common, or a small interface.
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
	if !slices.Equal(found, []string{"caddymodule/storepebble.go"}) {
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
var hosts = []string{"caddymodule", "operator/adminapi", "cli", "docs", "e2e", "bench", "soak", "interop"}

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
	for _, name := range []string{"caddyfile", "store", "storepebble", "storememory"} {
		eachNode(t, "caddymodule/"+name+".go", tables)
	}
	return append(words, "aip_gateway", "aip_aun", "aip_callback", "aip_console", "aip_discovery", "aip_health",
		"aip_healthz", "aip_identify",
		"aip_method", "aip_sample_agent")
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
