// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
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

	"github.com/aip-gateway/aip-gateway/gateway"
)

// TestReferenceModules: each module for a configuration is on a page.
func TestReferenceModules(t *testing.T) {
	var on []string
	for _, p := range referencePages {
		for _, m := range p.modules {
			on = append(on, m.id)
		}
	}
	record, err := os.ReadFile(recordDir + "modules.txt")
	if err != nil {
		t.Fatal(err)
	}
	for id := range strings.FieldsSeq(string(record)) {
		if !slices.Contains(on, id) && !strings.HasPrefix(id, "admin.api.") {
			t.Errorf("no page below docs/configuration has the module %s", id)
		}
	}
}

// TestReferenceTypes compares how options are written with the types of the fields that they set.
func TestReferenceTypes(t *testing.T) {
	r := newReference(t)
	found := 0
	for o, s := range r.all() {
		typ := s.typ
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		found++
		ok := true
		switch {
		case typ == reflect.TypeFor[caddy.Duration]():
			ok = strings.Contains(o.form, "<duration>")
		case typ.Kind() == reflect.Int || typ.Kind() == reflect.Int64:
			ok = regexp.MustCompile("<(n|size|days)>").MatchString(o.form)
		case typ == reflect.TypeFor[[]string]():
			ok = strings.Contains(o.form, "...") || o.form == "signing_key <key>" // which may be repeated
		case typ.Kind() == reflect.Bool:
			ok = !strings.Contains(o.form, "<") || strings.Contains(o.form, "|")
		}
		if !ok {
			t.Errorf("the syntax of %s is %q, and the type of %s is %v", o.path(), o.form, s.field, typ)
		}
	}
	if found < 200 {
		t.Errorf("only %d settings were found", found)
	}
}

// all yields the options of all modules, with the settings that they set.
func (r *reference) all() iter.Seq2[*option, setting] {
	return func(yield func(*option, setting) bool) {
		for _, p := range referencePages {
			for _, m := range p.modules {
				r.id, r.settings = m.id, r.settingsOf(m.id)
				for _, o := range r.syntax[m.directive].options() {
					for _, path := range setBy(r.t, o, m.id, r.settings) {
						if s := r.setting(path); m.directive != o.path() && !yield(o, s) {
							return
						}
					}
				}
			}
		}
	}
}

// TestReferenceOptions looks up every option that the parser of Caddyfiles knows.
func TestReferenceOptions(t *testing.T) {
	written := make(map[string]bool)
	for _, o := range syntax(t) {
		for _, o := range o.options() {
			for name := range strings.SplitSeq(o.name(), "|") {
				written[name] = true
			}
		}
	}
	found := 0
	look := func(e ast.Expr) {
		if word, ok := stringOf(e); ok {
			if found++; !written[word] {
				t.Errorf("no comment has the syntax of the option %s", word)
			}
		}
	}
	err := filepath.WalkDir("caddymodule", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if isOptions(n.Type) {
					for _, e := range n.Elts {
						look(e.(*ast.KeyValueExpr).Key)
					}
				}
			case *ast.AssignStmt: // of an option to those of a block
				for _, e := range n.Lhs {
					if at, ok := e.(*ast.IndexExpr); ok {
						if of, ok := at.X.(*ast.Ident); ok && slices.Contains([]string{"known", "in", "of"}, of.Name) {
							look(at.Index)
						}
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 180 {
		t.Errorf("only %d options were found", found)
	}
}

// isOptions reports whether a type is that of the options of a block.
func isOptions(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		e = s.Sel
	}
	name, ok := e.(*ast.Ident)
	return ok && strings.EqualFold(name.Name, "options")
}

func stringOf(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// TestReferenceDefaults compares the defaults that comments state with the defaults that the modules fill in.
func TestReferenceDefaults(t *testing.T) {
	parent, err := caddy.ProvisionContext(new(caddy.Config))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := caddy.NewContext(parent)
	defer cancel()
	parsers := []func(string) (any, error){
		func(s string) (any, error) { n, err := strconv.Atoi(s); return float64(n), err },
		func(s string) (any, error) { d, err := caddy.ParseDuration(s); return float64(d), err },
		func(s string) (any, error) { n, err := humanize.ParseBytes(s); return float64(n), err },
		func(s string) (any, error) { return s, nil },
	}
	r := newReference(t)
	found := 0
	for _, of := range []struct{ id, config string }{
		{"aip", `{"amp":{"dir":"/tmp"}}`},
		{"aip.stores.jetstream", `{"urls":["nats://a","nats://b"]}`},
		{"aip.stores.memory", `{}`},
		{"aip.stores.pebble", `{}`},
		{"http.handlers.aip_gateway", `{"agent":{"dialect":"a2a/legacy","url":"http://127.0.0.1:9101"},
			"aic":"10001000011K912345E789ABCDEF2353","group":{"allow_brokers":["mq.example.com"]}}`},
	} {
		module, err := ctx.LoadModuleByID(of.id, json.RawMessage(of.config))
		if err != nil {
			t.Fatal(err)
		}
		var given map[string]any
		if err := json.Unmarshal([]byte(of.config), &given); err != nil {
			t.Fatal(err)
		}
		got, set := make(map[string]any), make(map[string]any)
		flatten(t, "", module, got)
		flatten(t, "", given, set)
		for _, s := range r.settingsOf(of.id) {
			value, ok := got[s.path]
			if list, isList := value.([]any); isList && len(list) > 1 {
				continue
			}
			if _, given := set[s.path]; !ok || given || slices.Contains(byMachine, s.path) {
				continue
			}
			says := regexp.MustCompile(`Default: ((?:[^ .,;]|\.\d)+(?: [KMG]iB)?)`).FindStringSubmatch(
				strings.Join(strings.Fields(s.comment), " "))
			found++
			if says == nil || !slices.ContainsFunc(parsers, func(parse func(string) (any, error)) bool {
				want, err := parse(says[1])
				return err == nil && reflect.DeepEqual(value, want)
			}) {
				t.Errorf("the default of %s is %v, and its comment says: %s", s.field, value, s.comment)
			}
		}
	}
	if found < 24 {
		t.Errorf("only %d defaults were found", found)
	}
}

// byMachine are settings whose defaults the machine or another setting decides.
var byMachine = []string{"dir", "identity.mtls", "node", "agent.max_runs", "limits.body", "limits.memory",
	"limits.memory_per_leader"}

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

// TestDocsDialects holds the tables of docs/dialects.md, and what README.md says, against the dialects that there
// are.
func TestDocsDialects(t *testing.T) {
	for header, want := range map[string][]string{
		"| `agent <dialect>` | the agent speaks | the URL is |": gateway.AgentDialects(),
		"| `callers <dialect>` | callers speak | at |":          gateway.CallerDialects(),
	} {
		got := firstQuoted(t, "docs/dialects.md", header)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("docs/dialects.md does not have the dialects of the code (-code +page):\n%s", diff)
		}
		for _, name := range want {
			if !strings.Contains(pages(t)["README.md"], "`"+name+"`") {
				t.Errorf("README.md does not name the dialect %s", name)
			}
		}
	}
}
