// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestShownCertificate: each of two Partners shows its own certificate, whether its port or its name tells them apart.
// Where only their paths do, the configuration is refused, unless it says whose certificate is shown.
func TestShownCertificate(t *testing.T) {
	const one, two = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU"
	for name, c := range map[string]struct {
		sites func(portOne, portTwo string, partner func(path, aic string) string) string
		names [2]string // by which the Partners are asked for
		bad   string    // what the error says
	}{
		"two ports": {func(a, b string, partner func(path, aic string) string) string {
			return "https://localhost:" + a + " {\ntls {\nget_certificate aip\n}\n" + partner("", one) + "}\n" +
				"https://localhost:" + b + " {\ntls {\nget_certificate aip\n}\n" + partner("", two) + "}\n"
		}, [2]string{"localhost", "localhost"}, ""},
		"two names": {func(a, _ string, partner func(path, aic string) string) string {
			return "https://one.localhost:" + a + " {\ntls {\nget_certificate aip\n}\n" + partner("", one) + "}\n" +
				"https://two.localhost:" + a + " {\ntls {\nget_certificate aip\n}\n" + partner("", two) + "}\n"
		}, [2]string{"one.localhost", "two.localhost"}, ""},
		"two paths": {func(a, _ string, partner func(path, aic string) string) string {
			return "https://localhost:" + a + " {\ntls {\nget_certificate aip\n}\n" + partner("/one", one) +
				partner("/two", two) + "}\n"
		}, [2]string{}, "are at one address (localhost 127.0.0.1:"},
		"two paths, one is named": {func(a, _ string, partner func(path, aic string) string) string {
			return "https://localhost:" + a + " {\ntls {\nget_certificate aip " + one + "\n}\n" + partner("/one", one) +
				partner("/two", two) + "}\n"
		}, [2]string{"localhost", ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			ca := catest.New(t)
			ca.Serve(t)
			eabs := ""
			for i, aic := range []string{one, two} {
				ca.Add(aic, catest.Agent{DNS: []string{"localhost", "one.localhost", "two.localhost"}})
				file := filepath.Join(t.TempDir(), fmt.Sprint(i))
				if err := os.WriteFile(file, ca.EAB(aic), 0o600); err != nil {
					t.Fatal(err)
				}
				eabs += "eab {file." + file + "}\n"
			}
			addresses := [2]string{s.addr, freeAddr(t)}
			var ports [2]string
			for i, address := range addresses {
				_, ports[i], _ = net.SplitHostPort(address)
			}
			partner := func(path, aic string) string {
				return "aip_gateway " + path + " a2a/legacy " + s.agent + " {\nidentity off\naic " + aic + "\n}\n"
			}
			config := adapt(t, string(caddyfile.Format([]byte("{\nadmin off\nauto_https off\ndefault_bind 127.0.0.1\n"+
				"storage file_system "+t.TempDir()+"\naip {\nstore memory\ncertificates "+ca.Directory()+" {\n"+eabs+"}\n}\n}\n"+
				c.sites(ports[0], ports[1], partner)))))
			err := s.load([]byte(config))
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) {
					t.Errorf("%v, want %q", err, c.bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, aic := range []string{one, two} {
				if c.names[i] == "" {
					continue
				}
				at := addresses[i]
				if name != "two ports" {
					at = addresses[0]
				}
				shown := ""
				asynctest.Eventually(t, "there is a certificate of "+aic, func() bool {
					conn, err := tls.Dial("tcp", at, &tls.Config{ServerName: c.names[i], InsecureSkipVerify: true})
					if err != nil {
						return false
					}
					defer conn.Close()
					shown = conn.ConnectionState().PeerCertificates[0].Subject.CommonName
					return true
				})
				if shown != aic {
					t.Errorf("%s shows the certificate of %s, want %s", c.names[i], shown, aic)
				}
			}
		})
	}
}
