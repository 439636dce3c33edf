// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestPlaceholders: each must have a value, and no error quotes what stands beside one.
func TestPlaceholders(t *testing.T) {
	t.Setenv("CONF_TEST", "value")
	repl := caddy.NewReplacer()
	for setting, want := range map[string]string{
		"plain":                       "plain",
		"a-{env.CONF_TEST}":           "a-value",
		"hunter2{env.CONF_TEST_NONE}": "error: has a placeholder without a value: {env.CONF_TEST_NONE}",
		"{hunter2}":                   "error: has a placeholder without a value",
	} {
		got, err := Replace(repl, setting)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", setting, got, want)
		}
	}
}

// TestLiteral: a setting that takes no placeholders says what to write in a Caddyfile.
func TestLiteral(t *testing.T) {
	for value, want := range map[string]string{
		"plain": "",
		"x{env.A}": "name cannot have the placeholder {env.A}; in a Caddyfile, write {$A}, which is replaced when the " +
			"file is read",
		"{file./a}":  "name cannot have the placeholder {file./a}",
		"{hunter2}x": "",
	} {
		got := ""
		if err := Literal("name", value); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// TestReadFile: the name of a file may have placeholders.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CONF_TEST", dir)
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	repl := caddy.NewReplacer()
	if text, err := ReadFile(repl, "{env.CONF_TEST}/a"); err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
	_, err := ReadFile(repl, "{env.CONF_TEST_NONE}/a")
	const want = "the name of a file has a placeholder without a value: {env.CONF_TEST_NONE}"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
