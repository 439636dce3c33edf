// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// nobody is a caller without a certificate.
var nobody = tls.Certificate{}

// TestProxies has HAProxy, nginx and Caddy take the certificates of callers, and hand them on in every form, over TCP
// and over a Unix socket. Callers forge the header, and certificates are revoked by a list of the proxies' own CA.
//
// Promise: a caller sends the header of a proxy itself
func TestProxies(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	tools, s, pki := site.Unpacked(t), site.New(t), site.Certificates(t)
	root := newRoot(t, "proxies")
	ca := root.intermediate("below")
	alice, bob, carol := ca.leader(aliceAIC), ca.leader(bobAIC), ca.leader(carolAIC)
	roots, between, list, socket := s.InDir("root.pem"), s.InDir("below.pem"), s.InDir("below.crl"), s.InDir("s")
	writeRoots(t, roots, root)
	writeRoots(t, between, ca)
	ca.revoke(carol.Leaf)
	ca.writeCRL(list, time.Hour)

	var sites strings.Builder
	behind := func(at, header, form, from string) {
		fmt.Fprintf(&sites, `%s
	aip_gateway a2a/legacy http://%s {
		callers aip a2a
		identity {
			client_cert_header %s %s from %s {
				trust_pool %s
				intermediates %s
				revocation {
					crl %s
				}
			}
		}
	}
}
`, at, strings.TrimPrefix(agent, "http://"), header, form, from, roots, between, list)
	}
	of := make(map[string]int) // the ports of the gateway, by the form
	for form, header := range map[string]string{"rfc9440": "Client-Cert", "xfcc": "X-Forwarded-Client-Cert",
		"pem": "X-Client-Cert"} {
		of[form] = site.FreePort(t)
		behind(fmt.Sprintf("http://localhost:%d {", of[form]), header, form, "127.0.0.0/8 ::1/128")
	}
	behind("http://socket.example {\n\tbind unix/"+socket, "X-Client-Cert", "pem", "unix")

	proxies := make(map[string]int) // their ports
	for _, name := range []string{"haproxy", "nginx pem", "nginx xfcc", "nginx unix", "caddy"} {
		proxies[name] = site.FreePort(t)
	}
	fmt.Fprintf(&sites, `https://localhost:%d {
	tls %s %s {
		client_auth {
			mode verify_if_given
			trust_pool file %s %s
		}
	}
	reverse_proxy 127.0.0.1:%d {
		header_up Host localhost:%[6]d
		header_up Client-Cert ":{tls_client_certificate_der_base64}:"
	}
}
`, proxies["caddy"], pki.Server.Cert, pki.Server.Key, roots, between, of["rfc9440"])
	s.Start(site.Config{Handle: "respond 404", OtherSites: sites.String()})

	write := func(name, text string) string {
		path := s.InDir(name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	both := write("both.pem", read(pki.Server.Cert)+read(pki.Server.Key))
	cas := write("cas.pem", read(roots)+read(between))
	site.StartProcess(t, s.Dir, tools.Env, filepath.Join(tools.Root, "usr/sbin/haproxy"), "-db", "-f",
		write("haproxy.cfg", fmt.Sprintf(`global
	maxconn 100
defaults
	mode http
	timeout connect 5s
	timeout client 1m
	timeout server 1m
frontend aip
	bind 127.0.0.1:%d ssl crt %s ca-file %s verify optional
	http-request set-header Client-Cert :%%[ssl_c_der,base64]: if { ssl_c_used }
	http-request del-header Client-Cert if !{ ssl_c_used }
	http-request set-header Host localhost:%d
	default_backend gateway
backend gateway
	server gateway 127.0.0.1:%[4]d
`, proxies["haproxy"], both, cas, of["rfc9440"]))).WaitForPort(t, fmt.Sprintf("127.0.0.1:%d", proxies["haproxy"]))
	server := func(name, header, value, upstream, host string) string {
		return fmt.Sprintf(`
	server {
		listen 127.0.0.1:%d ssl;
		location / {
			proxy_pass %s;
			proxy_http_version 1.1;
			proxy_buffering off;
			proxy_set_header Host %s;
			proxy_set_header %s %s;
		}
	}`, proxies[name], upstream, host, header, value)
	}
	local := func(port int) string { return fmt.Sprintf("localhost:%d", port) }
	site.StartProcess(t, s.Dir, tools.Env, filepath.Join(tools.Root, "usr/sbin/nginx"), "-p", s.Dir, "-e", "stderr", "-g",
		"pid "+s.InDir("nginx.pid")+"; daemon off; master_process off;", "-c", write("nginx.conf", fmt.Sprintf(`
events {}
http {
	access_log off;
	client_body_temp_path %s;
	proxy_temp_path %[1]s;
	fastcgi_temp_path %[1]s;
	uwsgi_temp_path %[1]s;
	scgi_temp_path %[1]s;
	ssl_certificate %s;
	ssl_certificate_key %s;
	ssl_client_certificate %s;
	ssl_verify_client optional;
	ssl_verify_depth 3;
%s
}`, s.InDir("temp"), pki.Server.Cert, pki.Server.Key, cas,
			server("nginx pem", "X-Client-Cert", "$ssl_client_escaped_cert", "http://127.0.0.1:"+fmt.Sprint(of["pem"]),
				local(of["pem"]))+
				server("nginx xfcc", "X-Forwarded-Client-Cert", `'Hash=00;Cert="$ssl_client_escaped_cert";Subject="a, \\"b;"'`,
					"http://127.0.0.1:"+fmt.Sprint(of["xfcc"]), local(of["xfcc"]))+
				server("nginx unix", "X-Client-Cert", "$ssl_client_escaped_cert", "http://unix:"+socket+":", "socket.example"),
		))).WaitForPort(t, fmt.Sprintf("127.0.0.1:%d", proxies["nginx unix"]))

	escaped := url.PathEscape(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: alice.Leaf.Raw})))
	headers := map[string]string{
		"Client-Cert":             ":" + base64.StdEncoding.EncodeToString(alice.Leaf.Raw) + ":",
		"X-Forwarded-Client-Cert": `Cert="` + escaped + `"`,
		"X-Client-Cert":           escaped,
	}
	var forged []string
	for name, value := range headers {
		forged = append(forged, name, value)
	}
	get := func(mount, sender string, pair tls.Certificate, header ...string) string {
		var certs []tls.Certificate
		if pair.Leaf != nil {
			certs = append(certs, pair)
		}
		_, answer := site.CallerWith(t, mount, sender, certs...).Post("/rpc", site.RPCBody(sender, "get", "none", ""),
			header...)
		return string(answer)
	}
	open := make(map[string]*lastingStream)
	for name, port := range proxies {
		mount := fmt.Sprintf("https://localhost:%d", port)
		for _, tc := range []struct {
			what, sender string
			by           tls.Certificate
			header       []string
			want         string
		}{
			{"a certificate", aliceAIC, alice, nil, "-32001"}, // there is no such task
			{"a certificate and a forged header", bobAIC, bob, forged, "-32001"},
			{"a forged header for another", aliceAIC, bob, forged, "-32009"},
			{"a forged header alone", aliceAIC, nobody, forged, "-32008"},
			{"nothing", aliceAIC, nobody, nil, "-32008"},
			{"a revoked certificate", carolAIC, carol, nil, "-32008"},
		} {
			if got := get(mount, tc.sender, tc.by, tc.header...); !strings.Contains(got, tc.want) {
				t.Errorf("%s, %s: %s, want %s", name, tc.what, got, tc.want)
			}
		}
		open[name] = proxiedStream(t, name, mount, bob)
	}

	// A machine that may connect is believed, but a header that no such proxy writes is not.
	for _, tc := range []struct {
		form, what string
		header     http.Header
	}{
		{"xfcc", "no Cert", http.Header{"X-Forwarded-Client-Cert": {"Hash=00"}}},
		{"xfcc", "several elements", http.Header{"X-Forwarded-Client-Cert": {`Cert="` + escaped + `",By=x`}}},
		{"xfcc", "two lines", http.Header{"X-Forwarded-Client-Cert": {`Cert="` + escaped + `"`, "By=x"}}},
		{"pem", "a list", http.Header{"X-Client-Cert": {escaped + "," + escaped}}},
		{"pem", "two lines", http.Header{"X-Client-Cert": {escaped, escaped}}},
		{"rfc9440", "a list", http.Header{"Client-Cert": {headers["Client-Cert"] + ", " + headers["Client-Cert"]}}},
		{"rfc9440", "two lines", http.Header{"Client-Cert": {headers["Client-Cert"], headers["Client-Cert"]}}},
		{"rfc9440", "a header of another form", http.Header{"X-Client-Cert": {escaped}}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+local(of[tc.form])+"/rpc",
			bytes.NewReader(site.RPCBody(aliceAIC, "get", "none", "")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = tc.header
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var answer bytes.Buffer
		_, _ = answer.ReadFrom(res.Body) // what is missing is seen
		res.Body.Close()
		if !strings.Contains(answer.String(), "-32008") {
			t.Errorf("%s, %s: %s", tc.form, tc.what, answer.String())
		}
	}

	ca.revoke(bob.Leaf)
	ca.writeCRL(list, time.Hour)
	for name, stream := range open {
		if last := stream.ended(t, time.Minute); !strings.Contains(last, "-32008") || !strings.Contains(last, "revoked") {
			t.Errorf("%s: the stream of a revoked certificate ends with %s", name, last)
		}
		if got := get(fmt.Sprintf("https://localhost:%d", proxies[name]), aliceAIC, alice); !strings.Contains(got, "-32001") {
			t.Errorf("%s: the other Leader gets %s", name, got)
		}
	}
	if _, found := s.Doctor(site.Config{Handle: "respond 404", OtherSites: sites.String()}); !strings.Contains(
		strings.Join(found, "\n"), "ok revocation: 2 certificates of CN=below are revoked") {
		t.Errorf("doctor says %q", found)
	}
}

// proxiedStream opens a stream of a task that lasts, behind a proxy.
func proxiedStream(t *testing.T, name, mount string, pair tls.Certificate) *lastingStream {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: site.Trusted(t),
		Certificates: []tls.Certificate{pair}}}
	t.Cleanup(transport.CloseIdleConnections)
	return openLasting(t, &http.Client{Transport: transport}, mount, pair.Leaf.Subject.CommonName, name,
		strings.ReplaceAll(name, " ", "-"))
}
