// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/aip-gateway/aip-gateway/caddymodule"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

func page(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestEveryCaddyfileInTheDocsAdapts takes every example by its word.
func TestEveryCaddyfileInTheDocsAdapts(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?s)( *)```caddyfile\n(.*?)```")
	found := 0
	for _, name := range append(pages, "README.md") {
		for _, m := range fence.FindAllStringSubmatch(page(t, name), -1) {
			found++
			input := strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n")
			formatted := string(caddyfile.Format([]byte(input)))
			if strings.TrimSpace(formatted) != strings.TrimSpace(input) {
				t.Errorf("%s: an example is not formatted as caddy fmt does:\n%s", name, input)
			}
			if _, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(formatted), nil); err != nil || len(warnings) > 0 {
				t.Errorf("%s: an example does not adapt: %v %v\n%s", name, err, warnings, input)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d examples were found", found)
	}
}

// TestEverySettingIsDocumented walks the configuration by its JSON tags.
func TestEverySettingIsDocumented(t *testing.T) {
	text := page(t, "docs/configuration.md")
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				continue
			}
			if f.Type.Kind() == reflect.Struct {
				walk(path+name+".", f.Type)
				continue
			}
			if !strings.Contains(text, "`"+path+name+"`") {
				t.Errorf("docs/configuration.md does not mention the setting `%s%s`", path, name)
			}
		}
	}
	walk("", reflect.TypeFor[caddymodule.App]())
	walk("", reflect.TypeFor[caddymodule.Gateway]())
}

// TestMappingOfErrors holds the table of docs/mapping.md against what a Leader is told.
func TestMappingOfErrors(t *testing.T) {
	text := page(t, "docs/mapping.md")
	for _, kind := range task.Kinds() {
		var answer struct{ Error struct{ Code int } }
		if err := json.Unmarshal(aip.Server().AppendError(nil, jsonrpc.ID("1"), task.Errorf(kind, "x")), &answer); err != nil {
			t.Fatal(err)
		}
		if row := fmt.Sprintf("| −%d | %s |", -answer.Error.Code, kind); !strings.Contains(text, row) {
			t.Errorf("docs/mapping.md has no row %q", row)
		}
	}
}

// TestMappingOfStates holds the table of docs/mapping.md against what the codec makes of an agent's words.
func TestMappingOfStates(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (?:`([a-z-]+)`)? *\\|").FindAllStringSubmatch(page(t, "docs/mapping.md"), -1)
	seen := 0
	for _, row := range rows {
		said, means := row[1], task.State(row[2])
		if means != task.None && !means.Valid() {
			continue // a row of another table
		}
		rep, err := a2a.Legacy().Reply(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"1","result":{"id":"t","status":{"state":%q}}}`, said), nil)
		if err != nil || rep.State != means {
			t.Errorf("docs/mapping.md says that %q is %q, the codec that it is %q (%v)", said, means, rep.State, err)
		}
		seen++
	}
	if seen != 7 {
		t.Errorf("the table of states has %d rows, want 7", seen)
	}
}

// TestArchitectureNamesEveryRoom keeps docs/architecture.md from forgetting one.
func TestArchitectureNamesEveryRoom(t *testing.T) {
	text := page(t, "docs/architecture.md")
	for file := range strings.Lines(run(t, "git", "ls-files")) {
		if room, _, in := strings.Cut(strings.TrimSpace(file), "/"); in && !strings.HasPrefix(room, ".") && !strings.Contains(text, "`"+room+"/`") {
			t.Errorf("docs/architecture.md does not mention %s/", room)
		}
	}
}
