// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestCertificatesAreObtained: a gateway that has nothing but an EAB orders its certificates, shows one to Leaders and
// the other to its agent, and renews them without a reload. After a crash it goes on with them, although the EAB is
// spent, and in the end they are retired.
func TestCertificatesAreObtained(t *testing.T) {
	t.Parallel()
	const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	ca := catest.New(t)
	ca.Serve(t)
	ca.Add(aic, catest.Agent{DNS: []string{"localhost"}, Lifetime: 30 * time.Second})
	roots := x509.NewCertPool()
	roots.AddCert(ca.Root())

	var caller, serials atomic.Pointer[string] // what the agent has seen
	sample := legacyagent.New(legacyagent.Options{})
	agent := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller.Store(&r.TLS.PeerCertificates[0].Subject.CommonName)
		all := strings.ToUpper(r.TLS.PeerCertificates[0].SerialNumber.Text(16))
		if before := serials.Load(); before != nil {
			all += " " + *before
		}
		serials.Store(&all)
		sample.ServeHTTP(w, r)
	}))
	agent.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots}
	agent.StartTLS()
	t.Cleanup(func() {
		agent.Close()
		sample.Close()
	})

	s := site.New(t)
	pki := site.Certificates(t)
	agentRoot := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: agent.Certificate().Raw})
	site.NoError(t, os.WriteFile(s.InDir("agent-ca.pem"), agentRoot, 0o600))
	site.NoError(t, os.WriteFile(s.InDir("eab.json"), ca.EAB(aic), 0o600))
	path := s.InDir("Caddyfile")
	site.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(`{
	admin 127.0.0.1:%d
	storage file_system %s
	auto_https off
	default_bind 127.0.0.1
	aip {
		store pebble %s
		certificates %s {
			eab {file.%s}
			contact ops@example.org
			trust_bundle %s
		}
		amp %s {
			records audit
			sign aip
		}
	}
}
https://localhost:%d {
	tls {
		get_certificate aip
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway {
		aic %s
		agent a2a/legacy %s {
			tls {
				ca %s
				client_cert aip
			}
		}
	}
}
`, s.Admin, s.InDir("storage"), s.InDir("store"), ca.Directory(), s.InDir("eab.json"), s.InDir("bundle.pem"),
		s.InDir("amp"), s.Port,
		pki.CA.Cert, aic, agent.URL, s.InDir("agent-ca.pem"))), 0o600))
	if _, stdout, stderr := s.Caddy("aip", "doctor", "--config", path); !strings.Contains(stdout, "Caddy accepts") {
		t.Errorf("doctor: %s %s", stdout, stderr)
	}
	s.Run(path)

	shown := func() *x509.Certificate {
		pair, err := tls.LoadX509KeyPair(pki.Leader.Cert, pki.Leader.Key)
		site.NoError(t, err)
		c, err := tls.Dial("tcp", strings.TrimPrefix(s.URL(), "https://"),
			&tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{pair}})
		if err != nil {
			return nil
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0]
	}
	var first *x509.Certificate
	site.Eventually(t, "a certificate", func() bool { first = shown(); return first != nil })
	if first.Subject.CommonName != aic {
		t.Errorf("the certificate is of %s", first.Subject)
	}
	call := func() string {
		status, stdout, stderr := s.Caddy("aip", "call", s.URL(), "start", "hello", "--cert", pki.Leader.Cert, "--key",
			pki.Leader.Key, "--ca", s.InDir("bundle.pem"), "--partner", aic)
		if status != 0 || !strings.Contains(stdout, "hello") {
			return stdout + stderr
		}
		return ""
	}
	site.Eventually(t, "the bundle", func() bool { _, err := os.Stat(s.InDir("bundle.pem")); return err == nil })
	if bad := call(); bad != "" {
		t.Errorf("call: %s", bad)
	}
	if name := caller.Load(); name == nil || *name != aic {
		t.Errorf("the agent was called by %v", name)
	}
	// The call is reported, signed by the certificate that the agent was shown.
	var kid string
	site.Eventually(t, "a signed record", func() bool {
		text, _ := os.ReadFile(s.InDir("amp/amp_audit_aip-gateway.jsonl"))
		line, _, _ := strings.Cut(string(text), "\n")
		kid = gjson.Get(line, "integrity.kid").Str
		return kid != ""
	})
	if serial := serials.Load(); serial == nil || !strings.Contains(*serial, kid) {
		t.Errorf("a record is signed by %s, and the agent was shown %v", kid, serial)
	}
	// The next ones live longer than the lock that a process leaves which is killed while it renews them.
	ca.Add(aic, catest.Agent{DNS: []string{"localhost"}, Lifetime: time.Hour})
	site.Eventually(t, "other certificates", func() bool {
		var list adminapi.CertificateList
		s.AdminCall(http.MethodGet, adminapi.Certificates, "", &list)
		return len(list.Certificates) == 2 && !slices.ContainsFunc(list.Certificates, func(c adminapi.Certificate) bool {
			return time.Until(c.Until) < time.Minute
		})
	})
	if next := shown(); next == nil || next.Equal(first) {
		t.Error("a certificate that was renewed is not shown")
	}

	s.Kill()
	s.Run(path)
	site.Eventually(t, "a certificate after a crash", func() bool { return shown() != nil })
	if n := ca.Counts(); n.EABs != 1 || n.Accounts != 1 {
		t.Errorf("the authority was made to do %+v", n)
	}
	command := func(args ...string) string {
		t.Helper()
		stdout, _ := s.LiveCommand(0, append([]string{"certificates"}, args...)...)
		return stdout
	}
	if list := command("list"); !strings.Contains(list, aic+"  serverAuth  valid") ||
		!strings.Contains(list, aic+"  clientAuth  valid") {
		t.Errorf("list: %s", list)
	}
	command("retire", aic)
	if list := command("list"); !strings.Contains(list, "retired") || shown() != nil || ca.Counts().Revoked != 2 {
		t.Errorf("after retire, %d certificates are revoked: %s", ca.Counts().Revoked, list)
	}
	command("renew", aic)
	site.Eventually(t, "a certificate again", func() bool { return shown() != nil })
}
