// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
)

// TestSourceWithoutURL: each finding about a source of a running gateway names it, also one of OCSP without a URL.
func TestSourceWithoutURL(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"status":"ready","revocation":[{"kind":"ocsp","location":"","reason":"it is away"},`+
			`{"kind":"acps","location":"https://ca.example","reason":"it is away"}]}`)
	}))
	t.Cleanup(admin.Close)
	config := filepath.Join(t.TempDir(), "caddy.json")
	if err := os.WriteFile(config, []byte(`{"admin":{"listen":"`+strings.TrimPrefix(admin.URL, "http://")+`"}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range runningFindings(config, "") {
		names = append(names, f.Subject)
	}
	if got := strings.Join(names, " "); got != "ocsp https://ca.example" {
		t.Errorf("the sources are named %q", got)
	}
}
