// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// The record is what operators have of the gateway beside its behavior: configurations as Caddy understands them,
// modules, commands, and the answers of the admin API. A change of the code's structure leaves it as it is, byte for
// byte. Another change writes it anew, and its diff is what operators will notice. caddymodule records the metrics.

var update = flag.Bool("update", false, "write the record anew")

const recordDir = "docs/testdata/record/"

// recorded compares text with what the record has under a name, or writes it there.
func recorded(t *testing.T, name, text string) {
	t.Helper()
	file := recordDir + name
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s is not what it was (-before +now); if that is meant, run go test ./docs -run Record -update:\n%s",
			file, diff)
	}
}

// TestRecordModules records the modules of Caddy that are ours.
func TestRecordModules(t *testing.T) {
	var b strings.Builder
	for _, id := range caddy.Modules() {
		info, err := caddy.GetModule(id)
		if err != nil {
			t.Fatal(err)
		}
		of := reflect.Indirect(reflect.ValueOf(info.New())).Type().PkgPath()
		if strings.HasPrefix(of, "github.com/aip-gateway/aip-gateway/") {
			fmt.Fprintln(&b, id)
		}
	}
	recorded(t, "modules.txt", b.String())
}

// TestRecordCommands records what --help prints for each command.
func TestRecordCommands(t *testing.T) {
	root := &cobra.Command{Use: "aip"}
	caddycmd.Commands()["aip"].CobraFunc(root)
	caddy := &cobra.Command{Use: "caddy"}
	caddy.AddCommand(root)
	var b bytes.Buffer
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		fmt.Fprintf(&b, "== %s\n", c.CommandPath())
		c.InitDefaultHelpFlag()
		c.SetOut(&b)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	recorded(t, "commands.txt", b.String())
}

// TestRecordCaddyfiles records the JSON of every Caddyfile: those of the pages by page, and those of the tree.
func TestRecordCaddyfiles(t *testing.T) {
	all := make(map[string][]string) // by the name of the file
	for name, text := range pages(t) {
		if found := caddyfiles(text); found != nil {
			all[name] = found
		}
	}
	for _, name := range []string{"Caddyfile.example", "contrib/Caddyfile", "contrib/Caddyfile.cluster"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = []string{string(text)}
	}
	t.Setenv("AIP_NATS", "nats://nats") // of contrib/Caddyfile.cluster, as what follows
	t.Setenv("AIP_NATS_MONITOR", "http://nats:8222")
	for name, inputs := range all {
		var b bytes.Buffer
		for _, input := range inputs {
			adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(input), map[string]any{"filename": name})
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, input)
			}
			b.Write(flat(t, adapted))
			b.WriteByte('\n')
		}
		recorded(t, "adapted/"+strings.ReplaceAll(name, "/", "-")+".txt", b.String())
	}
}

// flat returns JSON with a line for each value: the path to it, and what it is.
func flat(t *testing.T, text []byte) []byte {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(path+"."+name, v[name])
			}
			if len(v) > 0 {
				return
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s.%d", path, i), e)
			}
			if len(v) > 0 {
				return
			}
		}
		value, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", strings.TrimPrefix(path, "."), value)
	}
	walk("", v)
	return b.Bytes()
}

// TestRecordAdmin records the status and the form of the answers of the admin API: without a gateway, to requests that
// are refused, and about a task with a webhook.
func TestRecordAdmin(t *testing.T) {
	a := newAdminRecord(t)
	for _, route := range adminapi.Routes {
		method, _, _ := strings.Cut(route.Method, ", ")
		a.ask(method, route.Path, "")
	}
	defer caddy.Stop()
	a.serve()
	for _, route := range adminapi.Routes {
		method, _, _ := strings.Cut(route.Method, ", ")
		a.ask("BREW", route.Path, "")
		a.ask(method, route.Path+"?none=1", "{}")
	}
	a.run()
	recorded(t, "admin.txt", a.text.String())
}
