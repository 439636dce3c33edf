// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
)

// TestDescribe describes a Partner with its certificate, its ACS and its card, and URLs without one.
func TestDescribe(t *testing.T) {
	t.Chdir(t.TempDir())
	p, err := devpki.Make(devpki.Options{Dir: pkiDir, Leader: leaderAIC})
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]string{
		"/agent/.well-known/acs.json": `{"aic":"` + leaderAIC + `","name":"Tours\u001b","version":"1",` +
			`"protocolVersion":"01.00"}`,
		"/agent/.well-known/agent-card.json": `{"name":"Tours","version":"1","supportedInterfaces":[` +
			`{"url":"https://localhost/agent","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`,
	}
	site := func(auth tls.ClientAuthType) string {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, ok := served[r.URL.Path]
			if strings.HasPrefix(r.URL.Path, "/agent") && !ok {
				w.WriteHeader(http.StatusNotFound)
			}
			io.WriteString(w, body)
		}))
		server.TLS = serverTLS(t, p, p.Server)
		server.TLS.ClientAuth = auth
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL
	}
	url := site(tls.RequireAndVerifyClientCert)
	got := runAIP(t, "describe", url+"/agent")
	for _, want := range []string{
		"url       " + url + "/agent\n", "cert      ", " valid until ", "leaders   the site asks for a client certificate\n",
		"acs       " + leaderAIC + "  Tours\ufffd  1\n          AIP, ACS 01.00\n",
		"card      Tours  1\n          A2A 1.0  JSONRPC  https://localhost/agent\n",
	} {
		if got.Status != 0 || !strings.Contains(got.Stdout, want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	got = runAIP(t, "describe", url+"/agent", "--json")
	if d := gjson.Parse(got.Stdout); d.Get("acs.aic").Str != leaderAIC || d.Get("agent_card.name").Str != "Tours" ||
		!d.Get("asks_for_client_certificate").Bool() || d.Get("certificate.not_after").Str == "" {
		t.Errorf("JSON: %+v", got)
	}
	if got := runAIP(t, "describe", site(tls.NoClientCert)+"/agent"); !strings.Contains(got.Stdout,
		"the site asks for no client certificate") {
		t.Errorf("a site without client_auth: %+v", got)
	}
	for path, want := range map[string]string{
		"": "is empty: the server has a site", "/agent/x": "404 Not Found; is aip_gateway mounted",
	} {
		if got := runAIP(t, "describe", url+path); got.Status != 1 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v, want %s", path, got, want)
		}
	}
	if got := runAIP(t, "describe", url+"/agent/rpc", "--json"); gjson.Get(got.Stdout, "acs.aic").Str != leaderAIC {
		t.Errorf("by its endpoint: %+v", got)
	}
	if got := runAIP(t, "acs", "export", url+"/agent/rpc"); gjson.Get(got.Stdout, "aic").Str != leaderAIC {
		t.Errorf("the ACS by the endpoint: %+v", got)
	}
	got = runAIP(t, "describe", "localhost")
	if got.Status != 1 || !strings.Contains(got.Stderr, "must begin with https") {
		t.Errorf("no URL: %+v", got)
	}
}
