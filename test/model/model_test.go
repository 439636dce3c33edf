// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A check is a model that spin goes through.
type check struct {
	model   string
	mistake string // switched on by this word; empty for none
	breaks  string // what is in the assertion that does not hold then
}

var checks = []check{
	{"append", "", ""},
	{"append", "NO_EPOCH", "by[epoch]"},
	{"append", "CLAIM_WITHOUT_CAS", "by[epoch]"},
	{"append", "HEARTBEAT_AS_SAFETY", "by[epoch]"},
	{"append", "NEW_NUMBER", "appended["},
	{"append", "NOT_IN_A_BATCH", "appended["},
	{"append", "LAST_AS_READ", "by[epoch]"},
	{"append", "PURGE_WITHOUT_SEQUENCE", "at["},

	{"turn", "", ""},
	{"turn", "RESUME_BEFORE_CLAIM", "runs<=1"},
	{"turn", "ACT_BEFORE_APPEND", "runs<=1"},
	{"turn", "LAGGING_READ", "runs<=1"},
	{"turn", "NO_LOOK", "runs<=1"},
	{"turn", "LEASE_FROM_ANSWER", "runs<=1"},
	{"turn", "RESEND_WITHOUT_ASKING", "runs<=1"},
	{"turn", "RESEND=2", "runs<=1"}, // shorter than a lease and a message to the agent
	{"turn", "STOPPED", "runs<=1"},  // no mistake: the case that remains
}

func TestModels(t *testing.T) {
	if out, err := exec.Command("./install.sh").CombinedOutput(); err != nil {
		t.Fatalf("install.sh: %v\n%s", err, out)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	spin := filepath.Join(cache, "aip-gateway", "spin-1", "usr", "bin", "spin")
	for _, c := range checks {
		t.Run(strings.Trim(c.model+" "+c.mistake, " "), func(t *testing.T) {
			out := c.run(t, spin)
			if c.mistake == "" {
				// That it is complete is said only by what it does not say.
				if !strings.Contains(out, "errors: 0") || strings.Contains(out, "not completed") ||
					strings.Contains(out, "too small") {
					t.Errorf("the model does not hold, or was not gone through:\n%s", out)
				}
				return
			}
			_, broken, found := strings.Cut(out, "assertion violated ")
			broken, _, _ = strings.Cut(broken, "\n")
			if !found || !strings.Contains(broken, c.breaks) {
				t.Errorf("the mistake is not found by %q:\n%s", c.breaks, out)
			}
		})
	}
}

// run has spin make a program of the model, which goes through it, and returns what that says.
func (c *check) run(t *testing.T, spin string) string {
	t.Helper()
	source, err := filepath.Abs(c.model + ".pml")
	if err != nil {
		t.Fatal(err)
	}
	make := []string{"-a", source}
	if c.mistake != "" {
		make = []string{"-a", "-D" + c.mistake, source}
	}
	dir := t.TempDir()
	var out string
	for _, command := range [][]string{
		append([]string{spin}, make...),
		// Safety is all that is asked for: that all starts end is an assertion about where nothing can happen any more.
		// The mistakes are found sooner in this order.
		{"gcc", "-w", "-O2", "-DSAFETY", "-DREVERSE", "-DT_REVERSE", "-DMEMLIM=2000", "-o", "pan", "pan.c"},
		{"./pan", "-m100000"},
	} {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		data, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, data)
		}
		out = string(data)
	}
	return out
}
