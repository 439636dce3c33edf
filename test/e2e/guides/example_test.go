// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestExample does what a person does who tries the gateway: makes certificates, runs Caddyfile.example and
// calls it from a terminal.
func TestExample(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	s.Env = []string{fmt.Sprintf("CADDY_ADMIN=127.0.0.1:%d", s.Admin)}
	example, err := os.ReadFile("../../../Caddyfile.example")
	if err != nil {
		t.Fatal(err)
	}
	agent := site.FreePort(t)
	for _, port := range []string{"8443", "9101"} {
		if !strings.Contains(string(example), port) {
			t.Fatalf("Caddyfile.example does not name the port %s any more", port)
		}
	}
	// At once: a free port may have the digits of another.
	text := strings.NewReplacer("8443", fmt.Sprint(s.Port), "9101", fmt.Sprint(agent)).Replace(string(example))
	path := filepath.Join(s.Dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	status, stdout, stderr := s.Caddy("aip", "pki")
	if status != 0 || !strings.Contains(stdout, "trust_pool file .pki/ca.pem") {
		t.Fatalf("caddy aip pki ended with %d and said:\n%s%s", status, stdout, stderr)
	}
	if status, stdout, stderr := s.Caddy("fmt", "--diff", path); status != 0 ||
		regexp.MustCompile(`(?m)^[-+]`).MatchString(stdout) {
		t.Errorf("Caddyfile.example is not formatted as caddy fmt wants it:\n%s%s", stdout, stderr)
	}
	s.Run(path)
	for _, line := range strings.Split(s.Out.String(), "\n") {
		if strings.Contains(line, `"level":"error"`) || strings.Contains(line, "not formatted") {
			t.Errorf("the example is complained about: %s", line)
		}
	}

	// call runs `caddy aip call` and returns what it says.
	call := func(want int, args ...string) string {
		t.Helper()
		status, stdout, stderr := s.Caddy(append([]string{"aip", "call", s.URL()}, args...)...)
		if status != want {
			t.Errorf("caddy aip call %q ended with %d, want %d; it said:\n%s%s", args, status, want, stdout, stderr)
		}
		return stdout + stderr
	}
	expect := func(out string, patterns ...string) {
		t.Helper()
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(out) {
				t.Errorf("there is no %s in:\n%s", p, out)
			}
		}
	}
	taskID := func(out string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)^task +(\S+)$`).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("there is no task in:\n%s", out)
		}
		return m[1]
	}

	out := call(0, "start", "hello")
	id := taskID(out)
	expect(out, `(?m)^state +awaiting-completion since `, `(?m)echo: hello$`, `(?m)^next +complete, continue or cancel`)
	expect(
		call(0, "get", "--task", id),
		`(?m)^was .* accepted$`,
		`(?m)^was .* working$`,
		`(?m)^was .* awaiting-completion$`,
		`(?m)^received .* start `,
	)
	expect(call(0, "continue", "--task", id, "again"), `(?m)echo: again$`)
	expect(call(0, "complete", "--task", id), `(?m)^state +completed since `)
	expect(call(3, "cancel", "--task", id), `it is completed`)

	id = taskID(call(0, "start", "ask"))
	expect(call(0, "continue", "--task", id, "blue"), `(?m)you said: blue$`)
	expect(call(0, "cancel", "--task", id), `(?m)^state +canceled since `)

	expect(call(3, "start", "--task", id, "ask"), `exists already`, `(?m)^state +canceled since `)
	expect(call(3, "re-stream", "--task", id), `\(event 1\)`, `(?m)^state +awaiting-input since `,
		`(?m)^state +canceled since .* \(event \d+\)$`)

	expect(call(3, "start", "fail"), `(?m)^state +failed since `, `(?m)^says +agent broke$`)
	expect(call(2, "get", "--task", "no-such-task"), `-32001`, `no-such-task`)
	expect(call(1, "get"), `--task`)
	expect(call(1, "dance"), `unknown command "dance"`)
	expect(call(1, "--cert", filepath.Join(s.Dir, "none.pem"), "start", "x"), `none\.pem`)
	expect(call(2, "--cert", ".pki/leader-v1.pem", "get", "--task", id), `-32001`)

	raw := call(0, "--json", "start", "--task", "of-json", "--session", "a-session", "--data", `{"a":[1,2]}`, "hi")
	var answer struct {
		JSONRPC string `json:"jsonrpc"`
		Result  struct {
			ID        string `json:"id"`
			SessionID string `json:"sessionId"`
			Status    struct {
				State string `json:"state"`
			} `json:"status"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(raw), &answer); err != nil {
		t.Errorf("--json prints no JSON: %v\n%s", err, raw)
	}
	if answer.JSONRPC != "2.0" || answer.Result.ID != "of-json" || answer.Result.SessionID != "a-session" ||
		answer.Result.Status.State != "awaiting-completion" {
		t.Errorf("--json prints\n%s", raw)
	}
	expect(call(2, "--json", "complete", "--task", "no-such-task"), `"code":-32001`)

	// Again is no harm: what is there is kept.
	if status, stdout, stderr := s.Caddy("aip", "pki"); status != 0 || strings.Contains(stdout, "made") {
		t.Errorf("the second caddy aip pki ended with %d and said:\n%s%s", status, stdout, stderr)
	}
	s.Stop(t)
	if code := s.Cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("caddy run ended with %d", code)
	}
}

// TestSampleAgentCommand runs the agent beside the gateway, as another process.
func TestSampleAgentCommand(t *testing.T) {
	t.Parallel()
	p := site.StartProcess(t, t.TempDir(), nil, site.CaddyBinary(t), "aip", "sample-agent", "--listen", "127.0.0.1:0")
	agent := p.WaitFor(t, `at (http://127\.0\.0\.1:\d+)`)[1]
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent})
	if got := site.LeaderOf(t, s.URL()).Start("one", "hi"); site.Product(got)[0] != "echo: hi" {
		t.Errorf("got %+v", site.AnswerOf(got))
	}
	p.Stop(t)
	if code := p.Cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the sample agent ended with %d", code)
	}
}
