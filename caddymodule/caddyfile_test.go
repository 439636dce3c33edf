// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestAdapt holds every golden file: a Caddyfile, a dashed line, and the JSON, or the error, that it gives.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/adapt/*.caddytest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddytest"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, ok := strings.Cut(string(content), "\n----------\n")
			if !ok && !*update {
				t.Fatal("the file has no dashed line")
			}
			if *update {
				input = string(caddyfile.Format([]byte(input)))
			}
			got := adapt(t, strings.TrimRight(input, "\n")+"\n")
			if *update {
				if err := os.WriteFile(file, []byte(strings.TrimRight(input, "\n")+"\n----------\n"+got+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
				t.Errorf("adapted (-want +got):\n%s", diff)
			}
		})
	}
}

func adapt(t *testing.T, input string) string {
	t.Helper()
	adapter := caddyconfig.GetAdapter("caddyfile")
	out, warnings, err := adapter.Adapt([]byte(input), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return "error: " + err.Error()
	}
	for _, w := range warnings {
		t.Errorf("the Caddyfile gives a warning: %s", w.Message)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, out, "", "\t"); err != nil {
		t.Fatal(err)
	}
	return indented.String()
}

// TestExampleAdapts holds the Caddyfile that make run runs.
func TestExampleAdapts(t *testing.T) {
	content, err := os.ReadFile("../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	got := adapt(t, string(content))
	if strings.HasPrefix(got, "error: ") || !strings.Contains(got, `"handler": "aip_gateway"`) {
		t.Errorf("Caddyfile.example adapts to %s", got)
	}
}
