// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	small "github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// profileInCI is of the small Partner.
const profileInCI = `
identities: {leader: {aic: 10001000011K94ZH3VDXLP4S5EB63614}}
protocols: [aip-01.00]
`

// TestCI runs the lines for CI, as the page has them, against a Partner here. They get the commit that is checked out.
func TestCI(t *testing.T) {
	page, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, job, _ := strings.Cut(string(page), "```yaml\n")
	job, _, _ = strings.Cut(job, "```")
	if n := strings.Count(job, "\n"); n != 5 {
		t.Errorf("the job has %d lines, want 5:\n%s", n, job)
	}
	var script strings.Builder
	for _, line := range regexp.MustCompile(`(?m)^- run: (.*)$`).FindAllStringSubmatch(job, -1) {
		script.WriteString(line[1] + "\n")
	}
	p := small.New("10001000011K912345E789ABCDEF2353")
	defer p.Close()
	server := httptest.NewServer(p)
	defer server.Close()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "profile.yaml"), []byte(profileInCI), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-ec", script.String())
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PARTNER="+server.URL, "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://"+root+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://github.com/aip-gateway/aip-gateway")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v, of:\n%s\nIt says:\n%s", err, script.String(), out)
	}
	t.Logf("%s", out[max(0, len(out)-400):])
	if junit, err := os.ReadFile(filepath.Join(folder, "aip.xml")); err != nil ||
		!strings.Contains(string(junit), "RPC-START-001") {
		t.Errorf("JUnit: %v\n%s", err, junit)
	}
}
