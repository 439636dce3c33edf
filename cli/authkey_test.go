// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := keyCommand()
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(args)
		err := cmd.Execute()
		return out.String(), err
	}
	out, err := run("reports", "--file", file)
	if err != nil || !strings.HasPrefix(out, "key   aipk_") || !strings.Contains(out, "\nline  reports sha256:") {
		t.Fatalf("%s, %v", out, err)
	}
	content, err := os.ReadFile(file)
	if _, line, _ := strings.Cut(out, "line  "); err != nil || string(content) != line {
		t.Errorf("the file has %q, %v", content, err)
	}
	if out, err := run("reports", "--file", file); err == nil || strings.Contains(out, "key   ") {
		t.Errorf("a second key of one name was made: %s", out)
	}
	if _, err := run("two words"); err == nil {
		t.Error("a name with a space was taken")
	}
	if out, err := run("reports", "--json"); err != nil || !strings.Contains(out, `"leader":"key:reports"`) {
		t.Errorf("%s, %v", out, err)
	}
}
