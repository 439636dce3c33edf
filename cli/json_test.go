// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestJSON: the members of printed JSON are stable, and an error of usage prints none.
func TestJSON(t *testing.T) {
	const aic = "10001000011K912345E789ABCDEF2353"
	dir := t.TempDir()
	id := filepath.Join(dir, "id.pem")
	for _, tt := range []struct {
		args    []string
		status  int
		members []string // sorted
	}{
		{[]string{"aic", "check", aic}, 0, []string{"aic", "check_digits_verified", "form", "valid"}},
		{[]string{"aic", "check", aic[:31] + "4"}, 1, []string{"aic", "check_digits_verified", "error", "valid"}},
		{[]string{"aic", "check", aic, "--salt", "1"}, 1, nil},
		{[]string{"aic", "make"}, 0, []string{"aic", "form"}},
		{[]string{"aic", "make", "--form", "v3"}, 1, nil},
		{[]string{"pki", "--dir", dir}, 0, []string{"files"}},
		{[]string{"pki", "--dir", dir, "--leader", "x"}, 1, nil},
		{[]string{"webhook-key"}, 0, []string{"public", "signing_key"}},
		{[]string{"webhook-key", "--hmac"}, 0, []string{"signing_key"}},
		{[]string{"aun-id", "leader.aid.test", "--file", id}, 0, []string{"aid", "file", "made", "public_key"}},
		{[]string{"aun-id", "other.aid.test", "--file", id}, 1, nil},
	} {
		got := runAIP(t, append(tt.args, "--json")...)
		var printed map[string]json.RawMessage
		if got.Stdout != "" {
			if err := json.Unmarshal([]byte(got.Stdout), &printed); err != nil {
				t.Errorf("%q: %v: %s", tt.args, err, got.Stdout)
			}
		}
		if diff := cmp.Diff(tt.members, slices.Sorted(maps.Keys(printed))); diff != "" || got.Status != tt.status {
			t.Errorf("%q: status %d, want %d; members (-want +got):\n%s", tt.args, got.Status, tt.status, diff)
		}
		if got.Status != 0 && got.Stderr == "" {
			t.Errorf("%q: nothing says why", tt.args)
		}
	}

	var files pkiFiles
	again := runAIP(t, "pki", "--dir", dir, "--json")
	if err := json.Unmarshal([]byte(again.Stdout), &files); err != nil {
		t.Fatal(err)
	}
	for i, f := range files.Files {
		if f.Made || f.Certificate == "" || f.Key == "" || f.NotAfter.IsZero() || (f.AIC == "") != (i == 0) {
			t.Errorf("%+v", f)
		}
	}
	if len(files.Files) != 4 {
		t.Errorf("there are %d files", len(files.Files))
	}
}

// TestEveryCommandHasJSON: but for the one running an agent, and for the one with JSON as its only output.
func TestEveryCommandHasJSON(t *testing.T) {
	aip := &cobra.Command{Use: "aip"}
	aipCommand(aip)
	var without []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if !c.HasSubCommands() && c.Flags().Lookup("json") == nil {
				without = append(without, c.CommandPath())
			}
			walk(c)
		}
	}
	walk(aip)
	want := []string{"aip acs export", "aip console", "aip sample-agent", "aip store export"}
	if !slices.Equal(without, want) {
		t.Errorf("without --json: %q, want %q", without, want)
	}
}
