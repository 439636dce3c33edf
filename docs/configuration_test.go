// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/dustin/go-humanize"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay"
)

const settingsTable = "| Caddyfile (JSON) | type | effect | default |"

// TestDocsSettings walks the configuration by its JSON tags.
func TestDocsSettings(t *testing.T) {
	text := pages(t)["docs/configuration.md"]
	found := 0
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				if f.Anonymous {
					walk(path, f.Type)
				}
				continue
			}
			if f.Tag.Get("caddy") != "" {
				continue // its settings are those of modules
			}
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				walk(path+name+".", inner)
				continue
			}
			found++
			if !strings.Contains(text, "`"+path+name+"`") {
				t.Errorf("docs/configuration.md does not mention the setting `%s%s`", path, name)
			}
		}
	}
	for path, typ := range modules() {
		walk(path, typ)
	}
	if found < 40 {
		t.Errorf("only %d settings were found", found)
	}
}

// modules yields the modules of a configuration, and the paths of their settings.
func modules() iter.Seq2[string, reflect.Type] {
	return func(yield func(string, reflect.Type) bool) {
		_ = yield("", reflect.TypeFor[caddymodule.App]()) &&
			yield("store.", reflect.TypeFor[caddymodule.PebbleStore]()) &&
			yield("store.", reflect.TypeFor[caddymodule.MemoryStore]()) &&
			yield("store.", reflect.TypeFor[caddymodule.JetStreamStore]()) &&
			yield("", reflect.TypeFor[caddymodule.Gateway]())
	}
}

// TestDocsTypes compares the types that the tables show with those of the fields.
func TestDocsTypes(t *testing.T) {
	fields := make(map[string]reflect.Type)
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if name == "" {
				if f.Anonymous {
					walk(path, inner)
				}
				continue
			}
			if fields[path+name] = inner; inner.Kind() == reflect.Struct {
				walk(path+name+".", inner)
			}
		}
	}
	for path, typ := range modules() {
		walk(path, typ)
	}
	fields["store.driver"] = reflect.TypeFor[string]() // Caddy reads it
	words := []string{"directory", "file", "path", "URL", "AIC", "AID", "name", "text", "key", "dialect", "AIC and AID",
		"AIC and names", "dialect, URL", "AID, URL", "name, text", "name, files"}
	lists := []string{"files", "networks", "hosts", "dialects", "AICs", "patterns", "URLs", "types"}
	setting := regexp.MustCompile("\\(`([a-z_.]+)`")
	found := 0
	for _, row := range tables(strings.ReplaceAll(pages(t)["docs/configuration.md"], `\|`, ","), settingsTable) {
		name := setting.FindStringSubmatch(row[0])
		if name == nil {
			continue
		}
		found++
		field, says := fields[name[1]], row[1]
		ok := false
		switch {
		case field == nil:
		case field == reflect.TypeFor[caddy.Duration]():
			ok = says == "duration"
		case field.Kind() == reflect.Int || field.Kind() == reflect.Int64:
			ok = says == "integer" || says == "bytes"
		case field.Kind() == reflect.Slice:
			ok = slices.Contains(lists, says) || says == "key"
		default:
			ok = slices.Contains(words, says) || len(inQuotes(says)) > 1 ||
				says == "files" && strings.Contains(row[0], "client_cert")
		}
		if !ok {
			t.Errorf("docs/configuration.md says that the type of %s is %q, and its field is %v", name[1], says, field)
		}
	}
	if strings.Contains(pages(t)["docs/configuration.md"], "| Caddyfile (JSON) | effect | default |") {
		t.Error("docs/configuration.md has a table without types")
	}
	if found < 70 {
		t.Errorf("only %d types were found", found)
	}
}

// TestDocsSubdirectives looks up every word that the parser of Caddyfiles knows.
func TestDocsSubdirectives(t *testing.T) {
	text := pages(t)["docs/configuration.md"]
	found := 0
	look := func(n ast.Node) bool {
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
	}
	for _, name := range []string{"caddyfile", "group", "store", "storepebble", "storememory"} {
		file, err := parser.ParseFile(token.NewFileSet(), "caddymodule/"+name+".go", nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, look)
	}
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

// TestDocsDefaults compares the defaults that the tables show with the defaults that the modules fill in.
func TestDocsDefaults(t *testing.T) {
	parent, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(parent)
	defer cancel()
	got := make(map[string]any)
	load := func(path, id, config string) {
		t.Helper()
		module, err := ctx.LoadModuleByID(id, json.RawMessage(config))
		if err != nil {
			t.Fatal(err)
		}
		flatten(t, path, module, got)
	}
	load("", "aip", `{"amp":{"dir":"/tmp"}}`)
	load("store.", "aip.stores.jetstream", `{"urls":["nats://a","nats://b"]}`)
	load("store.", "aip.stores.memory", `{}`)
	load("store.", "aip.stores.pebble", `{}`)
	got["store.driver"] = "pebble"
	got["store.sync"] = replay.SyncMode(0).String() // it is not filled in
	load("", "http.handlers.aip_gateway", `{"agent":{"dialect":"a2a/legacy","url":"http://127.0.0.1:9101"},
		"aic":"10001000011K912345E789ABCDEF2353","group":{"allow_brokers":["mq.example.com"]}}`)

	parsers := []func(string) (any, error){
		func(s string) (any, error) { n, err := strconv.Atoi(s); return float64(n), err },
		func(s string) (any, error) { d, err := caddy.ParseDuration(s); return float64(d), err },
		func(s string) (any, error) { n, err := humanize.ParseBytes(s); return float64(n), err },
		func(s string) (any, error) { return s, nil },
	}
	setting, value := regexp.MustCompile("\\(`([a-z_.]+)`\\)"), regexp.MustCompile("^`([^`]+)`$")
	found := 0
	for _, row := range tables(pages(t)["docs/configuration.md"], settingsTable) {
		name, says := setting.FindStringSubmatch(row[0]), value.FindStringSubmatch(row[3])
		if name == nil || says == nil {
			continue
		}
		found++
		ok := slices.ContainsFunc(parsers, func(parse func(string) (any, error)) bool {
			want, err := parse(says[1])
			return err == nil && reflect.DeepEqual(got[name[1]], want)
		})
		if !ok {
			t.Errorf(
				"docs/configuration.md says that the default of %s is %s, the code that it is %v",
				name[1],
				says[1],
				got[name[1]],
			)
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

// TestDocsDialects holds the tables of docs/configuration.md, and what README.md says, against the dialects that there
// are.
func TestDocsDialects(t *testing.T) {
	for header, want := range map[string][]string{
		"| `agent <dialect>` | the agent speaks | the URL is |": gateway.AgentDialects(),
		"| `callers <dialect>` | callers speak | at |":          gateway.CallerDialects(),
	} {
		got := firstQuoted(t, "docs/configuration.md", header)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/configuration.md does not have the dialects of the code (-code +page):\n%s", diff)
		}
		for _, name := range want {
			if !strings.Contains(pages(t)["README.md"], "`"+name+"`") {
				t.Errorf("README.md does not name the dialect %s", name)
			}
		}
	}
}
