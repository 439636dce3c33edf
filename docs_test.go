// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/dustin/go-humanize"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule"
	"github.com/aip-gateway/aip-gateway/internal/devpki"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// pages returns every document, by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, name := range append(names, "README.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(content)
	}
	return all
}

// tables returns the rows of the tables of a page that have this header, as trimmed cells.
func tables(text, header string) [][]string {
	var rows [][]string
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == header:
			in = true
		case !strings.HasPrefix(line, "|"):
			in = false
		case in && !strings.HasPrefix(line, "|---"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

// validate does what `caddy validate` does.
func validate(config string) error {
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(config), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		return fmt.Errorf("warnings: %v", warnings)
	}
	var c caddy.Config
	if err := json.Unmarshal(adapted, &c); err != nil {
		return err
	}
	return caddy.Validate(&c)
}

// TestDocsExamples takes every Caddyfile by its word.
func TestDocsExamples(t *testing.T) {
	all := pages(t)
	// The examples name certificates as getting-started.md makes them.
	t.Chdir(t.TempDir())
	if _, err := devpki.Make(devpki.Options{Dir: ".pki"}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEBHOOK_SIGNING_KEY", sign.Generate())
	t.Setenv("AGENT_TOKEN", "secret")
	fence := regexp.MustCompile("(?s)( *)```caddyfile\n(.*?)```")
	found := 0
	for name, text := range all {
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			found++
			input := strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n")
			formatted := string(caddyfile.Format([]byte(input)))
			if strings.TrimSpace(formatted) != strings.TrimSpace(input) {
				t.Errorf("%s: an example is not formatted as caddy fmt does:\n%s", name, input)
			}
			if err := validate(strings.ReplaceAll(formatted, "/etc/caddy/leaders-ca.pem", ".pki/ca.pem")); err != nil {
				t.Errorf("%s: an example is not valid: %v\n%s", name, err, input)
			}
		}
	}
	if found < 18 {
		t.Errorf("only %d examples were found", found)
	}
}

// TestDocsLinks follows every link within the documents, headings included.
func TestDocsLinks(t *testing.T) {
	all := pages(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			file, heading, _ := strings.Cut(m[1], "#")
			if file == "" {
				file = filepath.Base(name)
			}
			file = filepath.Join(filepath.Dir(name), file)
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
			if heading != "" && !slices.Contains(headings(all[file]), heading) {
				t.Errorf("%s links to %s, but there is no such heading", name, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d links were found", found)
	}
}

// headings returns the anchors that a page's headings have.
func headings(text string) (anchors []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(kept, " ", "-"))
	}
	return anchors
}

const settingsTable = "| Caddyfile (JSON) | effect | default |"

// TestDocsSettings walks the configuration by its JSON tags.
func TestDocsSettings(t *testing.T) {
	text := pages(t)["docs/configuration.md"]
	found := 0
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			if f.Type.Kind() == reflect.Struct {
				walk(path+name+".", f.Type)
				continue
			}
			found++
			if !strings.Contains(text, "`"+path+name+"`") {
				t.Errorf("docs/configuration.md does not mention the setting `%s%s`", path, name)
			}
		}
	}
	walk("", reflect.TypeFor[caddymodule.App]())
	walk("", reflect.TypeFor[caddymodule.Gateway]())
	if found < 40 {
		t.Errorf("only %d settings were found", found)
	}
}

// TestDocsSubdirectives looks up every word that the parser of Caddyfiles knows.
func TestDocsSubdirectives(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "caddymodule/caddyfile.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := pages(t)["docs/configuration.md"]
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		var words []ast.Expr
		switch n := n.(type) {
		case *ast.CaseClause:
			words = n.List
		case *ast.KeyValueExpr: // card's words are the keys of a map
			words = []ast.Expr{n.Key}
		}
		for _, e := range words {
			word, ok := stringOf(e)
			if !ok {
				continue
			}
			found++
			known := regexp.MustCompile("`([a-z {]+\\{ )?" + regexp.QuoteMeta(word) + "( [^`]*)?`")
			if !known.MatchString(text) && !strings.Contains(text, "`"+word+"`: ") && !strings.Contains(text, ": `"+word+"`") {
				t.Errorf("docs/configuration.md does not mention the subdirective %s", word)
			}
		}
		return true
	})
	if found < 40 {
		t.Errorf("only %d subdirectives were found", found)
	}
}

func stringOf(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// TestDocsDefaults compares the defaults that the tables show with those that the modules fill in.
func TestDocsDefaults(t *testing.T) {
	parent, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(parent)
	defer cancel()
	got := make(map[string]any)
	load := func(id, config string) {
		t.Helper()
		module, err := ctx.LoadModuleByID(id, json.RawMessage(config))
		if err != nil {
			t.Fatal(err)
		}
		flatten(t, "", module, got)
	}
	load("aip", `{}`)
	load("aip", `{"store":{"driver":"memory"}}`)
	got["store.driver"] = "pebble"
	got["store.sync"] = replay.SyncMode(0).String() // it is not filled in
	load("http.handlers.aip_gateway", `{"agent":{"dialect":"a2a/legacy","url":"http://127.0.0.1:9101"}}`)

	parsers := []func(string) (any, error){
		func(s string) (any, error) { n, err := strconv.Atoi(s); return float64(n), err },
		func(s string) (any, error) { d, err := caddy.ParseDuration(s); return float64(d), err },
		func(s string) (any, error) { n, err := humanize.ParseBytes(s); return float64(n), err },
		func(s string) (any, error) { return s, nil },
	}
	setting, value := regexp.MustCompile("\\(`([a-z_.]+)`\\)"), regexp.MustCompile("^`([^`]+)`$")
	found := 0
	for _, row := range tables(pages(t)["docs/configuration.md"], settingsTable) {
		name, says := setting.FindStringSubmatch(row[0]), value.FindStringSubmatch(row[2])
		if name == nil || says == nil {
			continue
		}
		found++
		ok := slices.ContainsFunc(parsers, func(parse func(string) (any, error)) bool {
			want, err := parse(says[1])
			return err == nil && reflect.DeepEqual(got[name[1]], want)
		})
		if !ok {
			t.Errorf("docs/configuration.md says that the default of %s is %s, the code that it is %v", name[1], says[1], got[name[1]])
		}
	}
	if found < 24 {
		t.Errorf("only %d defaults were found", found)
	}
}

// flatten adds the members of a module's JSON by their paths.
func flatten(t *testing.T, path string, v any, into map[string]any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	for name, m := range members {
		if inner, ok := m.(map[string]any); ok {
			flatten(t, path+name+".", inner, into)
			continue
		}
		if list, ok := m.([]any); ok && len(list) == 1 {
			m = list[0]
		}
		into[path+name] = m
	}
}

// TestDocsMessages provokes every message of docs/configuration.md that `caddy validate` can say.
func TestDocsMessages(t *testing.T) {
	store := func(option string) string { return "{\n" + option + "\n}\n:8443 {\n}\n" }
	gateway := func(directive string) string { return ":8443 {\n" + directive + "\n}\n" }
	block := func(settings string) string {
		return gateway("aip_gateway a2a/legacy http://127.0.0.1:9101 {\n" + settings + "\n}")
	}
	agent := func(settings string) string {
		return gateway("aip_gateway {\nagent a2a/legacy http://127.0.0.1:9101 {\n" + settings + "\n}\n}")
	}
	notify := func(settings string) string { return store("aip {\nnotify {\n" + settings + "\n}\n}") }
	key := func(key string) string { return notify("signing_key " + key) }
	provoke := map[string]string{
		"notify: attempts is …, but must be 1 to 100":                                                           notify("attempts 101"),
		"notify: timeout is …, but must be a second to a minute":                                                notify("timeout 2m"),
		"notify: concurrency is …, but must be 1 to 4096":                                                       notify("concurrency -1"),
		`notify: allow_networks: "…" is no network, such as 10.0.0.0/8`:                                         notify("allow_networks 10.0.0.1"),
		"notify: signing_key … has a placeholder without a value":                                               key("{env.AIP_NO_SUCH_KEY}"),
		"the signing key must begin with whsec_ (HMAC-SHA256) or whsk_ (ed25519)":                               key("secret"),
		"the signing key is a public one (whpk_); give its private half (whsk_)":                                key("whpk_AAAA"),
		"what follows … must be base64 of the standard alphabet, padded with =, and nothing else":               key("whsk_*"),
		"the signing key has … characters, and no key has more than 128":                                        key(strings.Repeat("w", 129)),
		"the secret after whsec_ has … bytes, and must have 24 to 64":                                           key("whsec_AAAA"),
		"the key after whsk_ has … bytes, and must have 32 (the seed) or 64 (with the public key)":              key("whsk_AAAA"),
		"the private and the public half of the key after whsk_ do not belong together":                         key("whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 64))),
		`notify: callback: "…" is no http or https URL`:                                                         notify("callback push.example.com"),
		"notify: callback must be a URL without credentials, query and fragment":                                notify("callback https://push.example.com/?a=b"),
		`there is no "…" in aip_callback`:                                                                       gateway("aip_callback {\npath /x\n}"),
		"agent needs a dialect and a URL: agent a2a/legacy http://127.0.0.1:9101":                               gateway("aip_gateway {\nagent\n}"),
		`agent: the URL has … bytes, but must have no more than 400`:                                            gateway("aip_gateway a2a http://127.0.0.1/" + strings.Repeat("x", 400)),
		`completion: it is "…", but must be auto or confirm`:                                                    block("completion never"),
		`public_url: "…" is no http or https URL`:                                                               block("public_url agent.example.com"),
		"public_url must be a URL without credentials, query and fragment":                                      block("public_url https://agent.example.com/#x"),
		`card: signatures is "…", but must be drop, keep or refuse`:                                             block("card {\nsignatures forge\n}"),
		`card: acs is "…", but must be 01.00 or 02.01`:                                                          block("card {\nacs 03.00\n}"),
		"aic needs exactly one value":                                                                           block("aic"),
		"allow needs at least one value":                                                                        block("allow"),
		"store needs a driver: pebble or memory":                                                                store("aip {\nstore\n}"),
		`there is no driver "…"; use pebble or memory`:                                                          store("aip {\nstore sqlite\n}"),
		`sync is "…", but must be state, always or never`:                                                       store("aip {\nstore pebble {\nsync sometimes\n}\n}"),
		"dir and sync are for the pebble driver; memory keeps nothing on disk":                                  store("aip {\nstore memory {\nsync always\n}\n}"),
		`store memory takes no argument "…"`:                                                                    store("aip {\nstore memory /tmp\n}"),
		"capacity is for the memory driver; pebble is bounded by max_size, retention, max_events and max_bytes": store("aip {\nstore pebble {\ncapacity 1GiB\n}\n}"),
		"is less than max_bytes (…), so that one task could not be kept":                                        store("aip {\nstore memory {\ncapacity 1MiB\n}\n}"),
		"max_events is …, but must be at least 16":                                                              store("aip {\nstore pebble {\nmax_events 15\n}\n}"),
		"max_bytes is …, but must be at least 64KiB":                                                            store("aip {\nstore pebble {\nmax_bytes 1KiB\n}\n}"),
		"retention, capacity and max_size must not be negative":                                                 store("aip {\nstore pebble {\nretention -1s\n}\n}"),
		"drain must not be negative":                                                                            store("aip {\ndrain -1s\n}"),
		"the aip option is given twice":                                                                         store("aip {\n}\naip {\n}"),
		`there is no "…" in aip`:                                                                                store("aip {\nstorage pebble\n}"),
		"no agent is given; write aip_gateway <dialect> <url>, or agent <dialect> <url> in its block":           gateway("aip_gateway {\n}"),
		"the agent is given twice; an aip_gateway fronts one":                                                   block("agent a2a/legacy http://127.0.0.1:9102"),
		"agent a2a/legacy needs a URL, such as http://127.0.0.1:9101":                                           gateway("aip_gateway a2a/legacy"),
		`agent takes a dialect and a URL, but there is also "…"`:                                                gateway("aip_gateway a2a/legacy http://127.0.0.1:9101 x"),
		`agent: there is no dialect "…"; this gateway can front …`:                                              gateway("aip_gateway a2a/9 http://127.0.0.1:9101"),
		`agent: "…" is no http or https URL`:                                                                    gateway("aip_gateway a2a/legacy 127.0.0.1"),
		"put credentials into header_up, not into the URL, which is logged":                                     gateway("aip_gateway a2a/legacy http://a:b@127.0.0.1:9101"),
		"agent: header_up … has a placeholder without a value":                                                  agent("header_up Authorization {env.AIP_NO_SUCH_TOKEN}"),
		"tls ca: there is no certificate in …":                                                                  agent("tls {\nca go.mod\n}"),
		"tls ca: open …: no such file or directory":                                                             agent("tls {\nca nowhere.pem\n}"),
		"agent: max_runs is …, but must be at least 2":                                                          agent("max_runs 1"),
		"agent: retry_for must not be negative; 0 is for not at all":                                            agent("retry_for -1s"),
		"client_cert needs a certificate and a key, both PEM files":                                             agent("tls {\nclient_cert a.pem\n}"),
		"tls client_cert: …":                                                                                    agent("tls {\nclient_cert go.mod go.mod\n}"),
		"header_up needs a name and a value":                                                                    agent("header_up Authorization Bearer x"),
		`header_up "…" has a name or a value that HTTP does not allow`:                                          agent(`header_up "A B" x`),
		`callers: there is no dialect "…"; this gateway can serve …`:                                            block("callers aip/9"),
		"aic: the check digits of the AIC are …, and … would be right":                                          block("aic 10001000011K912345E789ABCDEF2354"),
		`base_path: "…" does not begin with a slash`:                                                            block("base_path x"),
		`the identity mode is "…", and must be required, optional or off`:                                       block("identity maybe"),
		"limits: memory_per_leader is … bytes, but must be at least …":                                          block("limits {\nmemory_per_leader 1MiB\n}"),
		"limits: memory is … bytes, but must be at least …":                                                     block("limits {\nmemory 16MiB\nmemory_per_leader 15MiB\n}"),
		"write_timeout: … is too short; use a second or more":                                                   block("write_timeout 10ms"),
		"heartbeat: … is too short; use a second or more":                                                       block("heartbeat 10ms"),
		`two aip_gateway handlers answer under "…" but front different agents`:                                  gateway("handle_path /a* {\naip_gateway a2a/legacy http://127.0.0.1:1 {\naic 10001000011K912345E789ABCDEF2353\n}\n}\nhandle_path /b* {\naip_gateway a2a/legacy http://127.0.0.1:2 {\naic 10001000011K912345E789ABCDEF2353\n}\n}"),
		`there is no "…" in aip_gateway`:                                                                        block("idenity off"),
		"identity is given twice in aip_gateway":                                                                block("identity off\nidentity off"),
		`response is "…", but must be a duration, such as 30s or 24h`:                                           block("timeouts {\nresponse 30\n}"),
		"timeouts must not be negative":                                                                         block("timeouts {\nresponse -1s\n}"),
		"timeouts: max_awaiting is …, but must be at least awaiting_input and awaiting_completion":              block("timeouts {\nmax_awaiting 1h\n}"),
		`there is no "…" in timeouts`:                                                                           block("timeouts {\nanswer 1s\n}"),
		`body is "…", but must be a size, such as 64MiB`:                                                        block("limits {\nbody big\n}"),
		`depth is "…", but must be a whole number`:                                                              block("limits {\ndepth deep\n}"),
		"limits must not be negative":                                                                           block("limits {\ndepth -1\n}"),
		`there is no "…" in limits`:                                                                             block("limits {\nheight 1\n}"),
		"aip_sample_agent takes no settings":                                                                    gateway("aip_sample_agent x"),
	}
	var inPage []string
	for _, row := range tables(pages(t)["docs/configuration.md"], "| message | what to do |") {
		if message, ok := strings.CutPrefix(row[0], "`"); ok {
			inPage = append(inPage, strings.TrimSuffix(message, "`"))
		}
	}
	for _, message := range inPage {
		config, ok := provoke[message]
		if !ok {
			t.Errorf("docs/configuration.md has the message %q, which nothing here provokes", message)
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(message), "…", ".+")
		if err := validate(string(caddyfile.Format([]byte(config)))); err == nil || !regexp.MustCompile(pattern).MatchString(err.Error()) {
			t.Errorf("docs/configuration.md has the message %q, but Caddy says: %v", message, err)
		}
	}
	for message := range provoke {
		if !slices.Contains(inPage, message) {
			t.Errorf("docs/configuration.md does not have the message %q", message)
		}
	}
}

// TestDocsLogLines compares the table of docs/operations.md with what the code logs at info level and above.
func TestDocsLogLines(t *testing.T) {
	logged := make(map[string]string) // messages, by level
	for _, room := range []string{"caddymodule", "gateway", "identity", "notify", "partner", "replay", "sseproxy", "upstream"} {
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

// minus is how the documents write the sign of a code.
func minus(code int) string { return strings.ReplaceAll(strconv.Itoa(code), "-", "−") }

// TestDocsMoves holds the table of docs/concepts.md against the state table.
func TestDocsMoves(t *testing.T) {
	var got, want []string
	for _, row := range tables(pages(t)["docs/concepts.md"], "| state | moved by | to |") {
		from, command := strings.Trim(row[0], "`"), ""
		if from == "(none)" {
			from = ""
		}
		if m := regexp.MustCompile("^the Leader's `([a-z]+)`").FindStringSubmatch(row[1]); m != nil {
			command = m[1]
		}
		got = append(got, fmt.Sprintf("%s %s %s", from, command, strings.Trim(row[2], "`")))
	}
	for _, row := range task.Table() {
		if row.To != task.None {
			want = append(want, fmt.Sprintf("%s %s %s", row.From, row.Command, row.To))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/concepts.md does not have the moves of the code (-code +page):\n%s", diff)
	}
}

// TestDocsArchitecture keeps docs/architecture.md from forgetting a room or a dependency.
func TestDocsArchitecture(t *testing.T) {
	text := pages(t)["docs/architecture.md"]
	for file := range strings.Lines(run(t, "git", "ls-files")) {
		if room, _, in := strings.Cut(strings.TrimSpace(file), "/"); in && !strings.HasPrefix(room, ".") && !strings.Contains(text, "`"+room+"/`") {
			t.Errorf("docs/architecture.md does not mention %s/", room)
		}
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	direct, indirect := regexp.MustCompile(`^\t(\S+) v\S+$`), regexp.MustCompile(`^\t(\S+)$`)
	found := 0
	for line := range strings.Lines(string(mod)) {
		m := direct.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			if m = indirect.FindStringSubmatch(strings.TrimRight(line, "\n")); m == nil {
				continue // a tool has no version, what is indirect has a remark
			}
		}
		found++
		// The table leaves the host out where all know it, and the package where the module says enough.
		name := regexp.MustCompile(`(/cmd/.*|/trace)$`).ReplaceAllString(strings.TrimPrefix(m[1], "github.com/"), "")
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/architecture.md does not say why there is %s", m[1])
		}
	}
	if found < 15 {
		t.Errorf("only %d dependencies were found", found)
	}
}
