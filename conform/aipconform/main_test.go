// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const suite = `
acts_version: "1.0"
suites:
  - id: s
    tests:
      - {id: MUST, level: must, steps: [{id: x, operation: get, expect_error: {code: -32001}}]}
      - {id: SHOULD, level: should, steps: [{id: x, operation: get, expect_error: {code: -32002}}]}
      - {id: WRONG, level: must, steps: [{id: x, operation: get, expect: {body: {a: 1}}}]}
`

// TestStatus runs the command against Partners that answer in one way only.
func TestStatus(t *testing.T) {
	answer := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	partner := answer(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001}}`)
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	closed, err := net.Dial("tcp", open.Listener.Addr().String()) // no process can listen where a connection comes from
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	folder := t.TempDir()
	file := filepath.Join(folder, "suite.acts.yaml")
	if err := os.WriteFile(file, []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	junit := filepath.Join(folder, "junit.xml")
	for name, c := range map[string]struct {
		args     []string
		status   int
		contains string // of the output
	}{
		"all pass":       {[]string{partner, "--suite", file, "--only", "MUST", "--protocol", "aip-01.00"}, 0, "1/1 passed"},
		"both protocols": {[]string{partner, "--suite", file, "--only", "MUST"}, 0, "2/2 passed"},
		"a must fails":   {[]string{"--suite", file, partner}, 1, "expected  error: no error"},
		"a should fails": {[]string{"--suite", file, partner, "--only", "MUST,SHOULD"}, 2, "error.code: -32002"},
		"by level":       {[]string{"--suite", file, partner, "--level", "must", "--only", "SHOULD"}, 64, "no test is"},
		"unreachable":    {[]string{"http://" + closed.LocalAddr().String()}, 3, "connection refused"},
		"not authorized": {[]string{answer(403, "")}, 4, "answers 403"},
		"not let in": {[]string{answer(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32009}}`)}, 4,
			"answers the Leader with"},
		"no time":         {[]string{partner, "--suite", file, "--timeout", "1ns"}, 5, "the time of the run is over"},
		"no URL":          {nil, 64, "give the URL"},
		"no flag":         {[]string{"--nothing"}, 64, "not defined"},
		"a wrong level":   {[]string{partner, "--level", "high"}, 64, "want must, should or may"},
		"JUnit":           {[]string{partner, "--suite", file, "--only", "M*", "--junit", junit}, 0, "passed"},
		"JSON":            {[]string{partner, "--suite", file, "--only", "M*", "--json", "-"}, 0, `"acts_version": "1.0"`},
		"list":            {[]string{"list"}, 0, "RPC-START-001"},
		"help":            {[]string{"--help"}, 0, "aipconform tests Partners"},
		"A2A":             {[]string{"a2a", "--corpus", folder, partner, "--only", "MUST"}, 0, "1 not tested"},
		"A2A, no corpus":  {[]string{"a2a", partner}, 64, "give --corpus"},
		"A2A, both sides": {[]string{"a2a", "--corpus", folder, partner, "--through", partner}, 0, "0 of 3 differ"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if status := command(t.Context(), c.args, &out, &out); status != c.status {
				t.Errorf("the status is %d, want %d", status, c.status)
			}
			if !strings.Contains(out.String(), c.contains) {
				t.Errorf("no %q in:\n%s", c.contains, out.String())
			}
		})
	}
	if content, err := os.ReadFile(junit); err != nil || !strings.Contains(string(content), "<testsuites>") {
		t.Errorf("JUnit: %v\n%s", err, content)
	}
}
