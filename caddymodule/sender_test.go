// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestSender: a Partner without an aic answers under the AIC in the certificate that its own site shows. Where there is
// none, a line at load says so.
func TestSender(t *testing.T) {
	shown, other := devpkiAt(t, "one.localhost"), devpkiAt(t, "two.localhost")
	const own = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	nobody := madePKI{shown.ca, strings.TrimSuffix(shown.ca, ".pem") + "-key.pem", "", ""} // it has no AIC
	files := func(of madePKI) string { return "tls " + of.cert + " " + of.key + "\n" }
	for name, tc := range map[string]struct {
		sites  func(port string, partner func(more string) string) string
		name   string // by which the site is called
		want   string
		warned bool
	}{
		"by files": {func(port string, partner func(string) string) string {
			return "https://one.localhost:" + port + " {\n" + files(shown) + partner("") + "}\n"
		}, "one.localhost", shown.aic, false},
		"by files, for any name": {func(port string, partner func(string) string) string {
			return "https://:" + port + " {\n" + files(shown) + partner("") + "}\n"
		}, "one.localhost", shown.aic, false},
		"the site's own, of two": {func(port string, partner func(string) string) string {
			return "https://one.localhost:" + port + " {\n" + files(shown) + "respond 204\n}\n" +
				"https://two.localhost:" + port + " {\n" + files(other) + partner("") + "}\n"
		}, "two.localhost", other.aic, false},
		"one of its own": {func(port string, partner func(string) string) string {
			return "https://one.localhost:" + port + " {\n" + files(shown) + partner("aic "+own+"\n") + "}\n"
		}, "one.localhost", own, false},
		"without an AIC": {func(port string, partner func(string) string) string {
			return "https://one.localhost:" + port + " {\n" + files(nobody) + partner("") + "}\n"
		}, "one.localhost", "", true},
		"without an AIC, beside another site": {func(port string, partner func(string) string) string {
			return "https://one.localhost:" + port + " {\n" + files(shown) + "respond 204\n}\n" +
				"https://two.localhost:" + port + " {\n" + files(nobody) + partner("") + "}\n"
		}, "two.localhost", "", true},
		"for callers that do not compare it": {func(port string, partner func(string) string) string {
			return "https://one.localhost:" + port + " {\n" + files(nobody) + partner("callers aip a2a\n") + "}\n"
		}, "one.localhost", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			_, port, _ := net.SplitHostPort(s.addr)
			partner := func(more string) string {
				return "aip_gateway a2a/legacy " + s.agent + " {\nidentity optional\n" + more + "}\n"
			}
			log := filepath.Join(t.TempDir(), "log")
			logged := func() string {
				text, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			s.mustLoad([]byte(adapt(t, string(caddyfile.Format([]byte("{\nadmin off\nauto_https off\nskip_install_trust\n"+
				"log {\noutput file "+log+"\n}\n"+
				"default_bind 127.0.0.1\nstorage file_system "+t.TempDir()+"\naip {\nstore memory\n}\n}\n"+
				tc.sites(port, partner)))))))
			if got := strings.Contains(logged(), "Leaders of AIP 2 refuse the answers"); got != tc.warned {
				t.Errorf("it warns: %v, want %v: %s", got, tc.warned, logged())
			}
			if name == "for callers that do not compare it" {
				return
			}
			client := &http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{ServerName: tc.name, InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.addr+"/rpc",
				strings.NewReader(`{"jsonrpc":"2.0","id":"1","method":"rpc","params":{"command":{"type":"task-command",`+
					`"id":"c","sentAt":"2026-01-01T00:00:00Z","senderRole":"leader","senderId":"l","sessionId":"s","taskId":"t",`+
					`"command":"start","dataItems":[{"type":"text","text":"hello"}]}}}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tc.name
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := gjson.GetBytes(body, "result.senderId"); !got.Exists() || got.Str != tc.want {
				t.Errorf("the sender is %q, want %q: %s", got.Str, tc.want, body)
			}
			stored := s.agent
			if name == "one of its own" {
				stored = own
			}
			notified := string(dialectOf(&task.Webhook{Dialect: "aip/2"}, stored).AppendNotification(nil, new(task.Task)))
			if got := gjson.Get(notified, "senderId").Str; got != tc.want {
				t.Errorf("the sender of notifications is %q, want %q", got, tc.want)
			}
		})
	}
}

// madePKI is a certificate of a server, with an AIC in it.
type madePKI struct{ cert, key, aic, ca string }

func devpkiAt(t *testing.T, host string) madePKI {
	t.Helper()
	p := devpkitest.Make(t, devpki.Options{Hosts: []string{host}})
	aic, err := identity.FromCertificate(devpkitest.KeyPair(t, p.Server).Leaf)
	if err != nil {
		t.Fatal(err)
	}
	return madePKI{p.Server.Cert, p.Server.Key, string(aic), p.CA.Cert}
}

// TestSenderOfObtained: where a site shows a certificate that the gateway obtains, a Partner without an aic there
// answers under the AIC in it, also before there is one.
func TestSenderOfObtained(t *testing.T) {
	const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	for _, getter := range []string{"get_certificate aip", "get_certificate aip " + aic} {
		s := newSite(t)
		ca := catest.New(t)
		ca.Serve(t)
		ca.Add(aic, catest.Agent{DNS: []string{"localhost"}})
		eab := filepath.Join(t.TempDir(), "eab")
		if err := os.WriteFile(eab, ca.EAB(aic), 0o600); err != nil {
			t.Fatal(err)
		}
		s.mustLoad([]byte(adapt(t, string(caddyfile.Format([]byte("{\nadmin off\nauto_https off\nstorage file_system "+
			t.TempDir()+"\naip {\nstore memory\ncertificates "+ca.Directory()+" {\neab {file."+eab+"}\n}\n}\n}\n"+
			"https://localhost:"+strings.TrimPrefix(s.addr, "127.0.0.1:")+" {\nbind 127.0.0.1\ntls {\n"+getter+"\n}\n"+
			"aip_gateway /one a2a/legacy "+s.agent+" {\nidentity optional\naic "+aic+"\n}\n"+
			"aip_gateway /two a2a/legacy "+s.agent+"/two {\nidentity optional\n}\n}\n"))))))
		for _, g := range running().members() {
			if got := g.sender(); got != aic {
				t.Errorf("%s: the sender at %s is %q, want %q", getter, g.BasePath, got, aic)
			}
		}
	}
}

// TestValidateWarns: caddy validate warns of a Partner without an AIC, and a line at load of a site at an IP address
// that Caddy refuses to serve, unless it is told not to.
func TestValidateWarns(t *testing.T) {
	pki := devpkiAt(t, "one.localhost")
	for name, tc := range map[string]struct {
		cert, key, global string
		sender, address   bool
	}{
		"with an AIC":    {pki.cert, pki.key, "", false, true},
		"without an AIC": {pki.ca, strings.TrimSuffix(pki.ca, ".pem") + "-key.pem", "", true, true},
		"any server names": {pki.cert, pki.key, "default_sni 127.0.0.1\nservers {\nstrict_sni_host insecure_off\n}\n",
			false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			log := filepath.Join(t.TempDir(), "log")
			text := adapt(t, string(caddyfile.Format([]byte("{\nadmin off\nauto_https off\n"+tc.global+
				"log {\noutput file "+log+"\n}\nstorage file_system "+t.TempDir()+"\naip {\nstore memory\n}\n}\n"+
				"https://"+s.addr+" {\ntls "+tc.cert+" "+tc.key+" {\nclient_auth {\nmode require_and_verify\n"+
				"trust_pool file "+pki.ca+"\n}\n}\naip_gateway a2a/legacy "+s.agent+"\n}\n"))))
			var config caddy.Config
			if err := caddy.StrictUnmarshalJSON([]byte(text), &config); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&config); err != nil {
				t.Fatal(err)
			}
			logged := func(what string) bool {
				text, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
				return strings.Contains(string(text), what)
			}
			if got := logged("Leaders of AIP 2 refuse the answers"); got != tc.sender {
				t.Errorf("caddy validate warns of no AIC: %v, want %v", got, tc.sender)
			}
			s.mustLoad([]byte(text))
			if got := logged("the name of the site is an IP address"); got != tc.address {
				t.Errorf("the load warns of an IP address: %v, want %v", got, tc.address)
			}
		})
	}
}
