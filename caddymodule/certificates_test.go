// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"crypto/elliptic"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

// aunFiles writes what the option aun reads: a certificate of two days, that of an agent of three, their roots, and a
// list of an hour.
func (s *site) aunFiles() (own, agent, roots, crl string) {
	s.t.Helper()
	pki := auntest.NewPKI(s.t)
	id := pki.IdentityFor("gateway.aid.test", elliptic.P256(), 48*time.Hour)
	own, roots, crl = filepath.Join(s.dir, "own.pem"), filepath.Join(s.dir, "roots.pem"), filepath.Join(s.dir, "crl.der")
	if err := id.Save(own, false); err != nil {
		s.t.Fatal(err)
	}
	agent = filepath.Join(s.dir, "agent.pem")
	for file, text := range map[string][]byte{
		agent: []byte(pki.IdentityFor("agent.aid.test", elliptic.P256(), 72*time.Hour).CertPEM()),
		roots: pki.RootsPEM(), crl: pki.Revoke(pki.Identity("revoked.aid.test")),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return own, agent, roots, crl
}

// TestCertificates: the metrics name every file of certificates of a configuration, the log those that end soon, and a
// client certificate for brokers that is renewed needs no reload.
func TestCertificates(t *testing.T) {
	s := newSite(t)
	const day = 24 * time.Hour
	// Leaves are valid for 365 days.
	young, old := devpkitest.Make(t, devpki.Options{}), devpkitest.Make(t, devpki.Options{Now: time.Now().Add(-360 * day)})
	own, agent, roots, crl := s.aunFiles()
	_, port, _ := strings.Cut(s.addr, ":")
	config := adapt(t, string(caddyfile.Format(fmt.Appendf(nil, `{
	admin off
	auto_https off
	default_bind 127.0.0.1
	aip {
		store pebble %s
		drain 1s
		aun {
			cert %s
			agent_cert %s
			roots %s
			crl %s
		}
	}
}
https://:%s {
	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway {
		agent a2a/legacy https://127.0.0.1:1 {
			tls {
				ca %s
				client_cert %s %s
			}
		}
		aic 10001000011K912345E789ABCDEF2353
		group {
			allow_brokers broker.example
			tls {
				ca %s
				client_cert %s %s
			}
		}
	}
}
`, s.dir+"/store", own, agent, roots, crl, port, old.Server.Cert, old.Server.Key, young.CA.Cert, old.CA.Cert,
		young.Leader.Cert, young.Leader.Key, young.CA.Cert, old.LeaderV1.Cert, old.LeaderV1.Key))))
	if strings.HasPrefix(config, "error") {
		t.Fatal(config)
	}
	s.mustLoad([]byte(config))
	running, err := caddy.ActiveContext().App("aip")
	if err != nil {
		t.Fatal(err)
	}
	app := running.(*App)
	inDays := func(at time.Time) float64 { return time.Until(at).Round(time.Hour).Hours() / 24 }
	want := map[string]float64{
		"site ":                         inDays(old.Server.NotAfter),
		"leaders " + young.CA.Cert:      inDays(young.CA.NotAfter),
		"agent " + young.Leader.Cert:    inDays(young.Leader.NotAfter),
		"agent_ca " + old.CA.Cert:       inDays(old.CA.NotAfter),
		"group " + old.LeaderV1.Cert:    inDays(old.LeaderV1.NotAfter),
		"group_ca " + young.CA.Cert:     inDays(young.CA.NotAfter),
		"aun " + own:                    2,
		"aun " + agent:                  3,
		"aun_roots " + roots:            inDays(time.Now().AddDate(10, 0, 0)),
		"aun_crl " + crl:                1.0 / 24,
		"since aun_crl " + crl:          0,
		"since agent_ca " + old.CA.Cert: -360 - 1.0/24,
	}
	metrics := func() map[string]float64 {
		t.Helper()
		families, err := app.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			since, isSince := strings.CutSuffix(f.GetName(), "_not_before_timestamp_seconds")
			if since != "aip_certificate" && f.GetName() != "aip_certificate_not_after_timestamp_seconds" {
				continue
			}
			for _, m := range f.GetMetric() {
				key := m.GetLabel()[2].GetValue() + " " + m.GetLabel()[0].GetValue()
				if isSince {
					key = "since " + key
				}
				if _, wanted := want[key]; wanted || !isSince {
					got[key] = inDays(time.Unix(int64(m.GetGauge().GetValue()), 0))
				}
			}
		}
		return got
	}
	if diff := cmp.Diff(want, metrics()); diff != "" {
		t.Errorf("days until the end (-want +got):\n%s", diff)
	}
	warned := func() (of []string) {
		var out bytes.Buffer
		app.pki.WarnOfCertificates(slog.New(slog.NewTextHandler(&out, nil)), time.Now())
		for line := range strings.Lines(out.String()) {
			_, use, _ := strings.Cut(line, "use=")
			use, _, _ = strings.Cut(use, " ")
			of = append(of, use)
		}
		return of
	}
	if diff := cmp.Diff([]string{"group", "site"}, warned()); diff != "" {
		t.Errorf("warned of (-want +got):\n%s", diff)
	}

	for from, to := range map[string]string{
		young.LeaderV1.Cert: old.LeaderV1.Cert, young.LeaderV1.Key: old.LeaderV1.Key, young.Leader.Cert: old.Server.Cert,
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want["group "+old.LeaderV1.Cert] = inDays(young.LeaderV1.NotAfter) // and the site has not read its file again
	if diff := cmp.Diff(want, metrics()); diff != "" {
		t.Errorf("after the renewal, days until the end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"site"}, warned()); diff != "" {
		t.Errorf("after the renewal, warned of (-want +got):\n%s", diff)
	}
}
