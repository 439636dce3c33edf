// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

const validACS = `{"aic":"` + leaderAIC + `","active":true,"lastModifiedTime":"2025-03-15T16:30:00+08:00",` +
	`"protocolVersion":"01.00","name":"Tours","description":"Plans","version":"1","provider":{"organization":"O",` +
	`"url":"https://o.example","license":"L"},"securitySchemes":{"mtls":{"type":"mutualTLS",` +
	`"x-caChallengeBaseUrl":"https://o.example/c"}},"endPoints":[{"url":"https://a.example","transport":"JSONRPC",` +
	`"security":[{"mtls":[]}]}],"capabilities":{"streaming":true,"notification":true,"messageQueue":[]},` +
	`"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[]}`

// TestACS exports, validates and compares documents at URLs, in files and from the standard input.
func TestACS(t *testing.T) {
	t.Chdir(t.TempDir())
	served := map[string]string{
		"/.well-known/acs.json":         validACS,
		"/draft/.well-known/acs.json":   strings.Replace(validACS, leaderAIC, "", 1),
		"/wrong/.well-known/acs.json":   strings.Replace(validACS, leaderAIC, leaderAIC[:30]+"00", 1),
		"/acps-atr-v2/acs/" + leaderAIC: strings.Replace(validACS, `"active":true`, `"active":false,"iconUrl":null`, 1),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := served[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		io.WriteString(w, body)
	}))
	defer server.Close()
	for name, body := range map[string]string{
		"valid.json": validACS, "other.json": strings.Replace(validACS, `"Plans"`, `"Books\u001b"`, 1), "broken.json": "{",
		"wrong.json": strings.Replace(validACS, `,"license":"L"`, `,"x":1`, 1),
	} {
		if err := os.WriteFile(name, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"export URL", 0, "\n  \"aic\": \"" + leaderAIC + "\",\n", ""},
		{"export URL/draft", 0, "\n  \"aic\": \"\",\n", ""},
		{"export URL/none", 1, "", "404"},
		{"validate URL", 0, "", ""},
		{"validate valid.json --json", 0, `{"mistakes":[]}` + "\n", ""},
		{"validate URL/acps-atr-v2/acs/" + leaderAIC, 1, "iconUrl: it is no URL; ", "mistakes in the ACS: 1"},
		{"validate wrong.json", 1, "provider.license: it is missing; write the licence of who provides the agent\n" +
			"provider.x: a registry refuses members that it does not know; remove it\n", "mistakes in the ACS: 2"},
		{"validate URL/draft", 1, "aic: it is empty; write a text\n", "mistakes in the ACS: 1"},
		{"validate --draft URL/draft", 0, "", ""},
		{"validate URL/wrong", 1, "aic: ", "mistakes in the ACS: 1"},
		{"validate broken.json", 1, "$: it is no JSON: ", "mistakes in the ACS: 1"},
		{"validate none.json", 1, "", "none.json"},
		{"diff URL URL/acps-atr-v2/acs/" + leaderAIC, 0, "", ""},
		{"diff URL/draft valid.json", 0, "", ""},
		{"diff URL other.json", 1, `description: served "Plans", registered "Books\u001b"` + "\n", "differences: 1"},
		{"diff URL wrong.json", 1, `provider.license: served "L", registered nothing` + "\n", "differences: 2"},
		{"diff URL broken.json", 2, "", "the ACS that is registered: it is no JSON"},
		{"diff URL none.json", 2, "", "none.json"},
		{"diff URL/none valid.json", 2, "", "404"},
	} {
		args := strings.Fields(strings.ReplaceAll(tc.args, "URL", server.URL))
		got := runAIP(t, append([]string{"acs"}, args...)...)
		if got.Status != tc.status || !strings.Contains(got.Stdout, tc.stdout) || tc.stdout == "" && got.Stdout != "" ||
			!strings.Contains(got.Stderr, tc.stderr) || tc.stderr == "" && got.Stderr != "" {
			t.Errorf("%s: %+v, want %+v", tc.args, got, tc)
		}
	}
	got := runAIP(t, "acs", "diff", "--json", server.URL, "other.json")
	if d := gjson.Get(got.Stdout, "differences.0"); got.Status != 1 || d.Get("path").Str != "description" ||
		d.Get("served").Str != "Plans" {
		t.Errorf("--json: %+v", got)
	}
}
