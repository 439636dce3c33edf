// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddypki"
)

// TestLocalCA: Caddy's own CA is put into the system's trust store only where a site shows a certificate of it. Nothing
// is started.
func TestLocalCA(t *testing.T) {
	const obtained = "https://localhost:8443 {\ntls {\nget_certificate aip\n}\n" +
		"aip_gateway a2a/legacy http://127.0.0.1:1 {\nidentity off\naic 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4\n}\n}\n"
	for name, c := range map[string]struct {
		options, sites string
		installs       bool
	}{
		"obtained":                    {"", obtained, false},
		"obtained, by an address":     {"", "https://127.0.0.1:8443" + obtained[len("https://localhost:8443"):], false},
		"another site has it":         {"", obtained + "https://other.localhost:8444 {\nrespond ok\n}\n", true},
		"another site has it by name": {"", obtained + "https://other.example:8444 {\ntls internal\nrespond ok\n}\n", true},
		"the operator's CA":           {"pki {\nca local {\nname Ours\n}\n}\n", obtained, true},
		"the operator wants no trust": {"skip_install_trust\n", obtained, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := adapt(t, string(caddyfile.Format([]byte("{\nadmin off\nauto_https disable_redirects\n"+c.options+
				"storage file_system "+t.TempDir()+"\naip {\nstore memory\n"+
				"certificates https://ca.example/acps-atr-v2/acme/directory\n}\n}\n"+c.sites))))
			var whole caddy.Config
			if err := json.Unmarshal([]byte(config), &whole); err != nil {
				t.Fatal(err)
			}
			ctx, err := caddy.ProvisionContext(&whole)
			if err != nil {
				t.Fatal(err)
			}
			app, err := ctx.AppIfConfigured("pki")
			if err != nil {
				t.Fatal(err)
			}
			ca := app.(*caddypki.PKI).CAs[caddypki.DefaultCAID]
			if got := ca.InstallTrust == nil || *ca.InstallTrust; got != c.installs {
				t.Errorf("the root is put into the trust store: %t, want %t", got, c.installs)
			}
		})
	}
}
