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
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
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
	for _, f := range runningFindings(t.Context(), config, "") {
		names = append(names, f.Subject)
	}
	if got := strings.Join(names, " "); got != "ocsp https://ca.example" {
		t.Errorf("the sources are named %q", got)
	}
}

// TestAddressesInCards: the addresses in a Partner's cards are called, and one without an answer of a Partner is named.
func TestAddressesInCards(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/agent-card.json":
			io.WriteString(w, `{"url":"http://`+r.Host+`/x","supportedInterfaces":[{"url":"http://`+r.Host+
				`/gone","protocolBinding":"JSONRPC"},{"url":"http://`+r.Host+`/rest","protocolBinding":"HTTP+JSON"}]}`)
		case "/.well-known/acs.json":
			io.WriteString(w, `{"endPoints":[{"url":"http://`+r.Host+`/x/rpc","transport":"JSONRPC"},{"url":"http://`+
				r.Host+`/closed","transport":"JSONRPC"}]}`)
		case "/x", "/x/rpc":
			io.WriteString(w, `{"jsonrpc":"2.0","id":"doctor","error":{"code":-32001,"message":"Task not found"}}`)
		case "/closed":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	got := cardFindings(t.Context(), []adminapi.AgentHealth{{Name: "maps", URL: site.URL + "/"}, {Name: "unknown"},
		{Name: "lost", URL: site.URL + "/other"}})
	want := []doctor.Finding{{Check: "card", Status: doctor.Warning, Subject: "maps", Text: "agent-card.json names " +
		site.URL + "/gone for calls, where no Partner answers, but HTTP 404; set public_url to the URL at " +
		"which callers reach the mount"}, {Check: "card", Status: doctor.Warning, Subject: "lost", Text: "its URL is " +
		site.URL + "/other, where no Partner answers, but HTTP 404; set public_url to the URL at which callers reach the " +
		"mount"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
