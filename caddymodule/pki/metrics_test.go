// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric/metrictest"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// TestMetrics: refused handshakes are counted for the process, sources for the configuration, and validities while it
// has its node open.
func TestMetrics(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	h := newHost(t)
	for name := range metrictest.Gather(t, h) {
		if !strings.HasPrefix(name, "aip_handshakes_refused_total{") &&
			!strings.HasPrefix(name, "aip_certificates_refused_total{") && name != "aip_roots_not_in_use" {
			t.Errorf("there is %s before the start", name)
		}
	}

	h.Loaded = Validities{{UseAgent, "a.pem", "a"}: {time.Unix(5, 0), time.Unix(9, 0)}}
	h.Current = func() Validities { return Validities{{useClient, "", "b"}: {time.Unix(6, 0), time.Unix(8, 0)}} }
	missing := filepath.Join(t.TempDir(), "none.crl")
	crl := RevocationSource{Kind: string(revocation.CRL), Location: missing}
	if err := h.Ask(&Revocation{Sources: []RevocationSource{crl}}); err != nil {
		t.Fatal(err)
	}
	h.FollowSources()
	h.start(t)
	verifier := &RevocationVerifier{h}
	chain := []*x509.Certificate{devpkitest.KeyPair(t, made.Leader).Leaf, devpkitest.KeyPair(t, made.CA).Leaf}
	if err := verifier.VerifyClientCertificate(nil, [][]*x509.Certificate{chain}); err == nil {
		t.Error("a certificate without a list is let in")
	}
	source := fmt.Sprintf(`{kind="crl",location=%q}`, missing)
	want := map[string]float64{
		`aip_certificate_not_before_timestamp_seconds{file="a.pem",subject="a",use="agent"}`: 5,
		`aip_certificate_not_after_timestamp_seconds{file="a.pem",subject="a",use="agent"}`:  9,
		`aip_certificate_not_before_timestamp_seconds{file="",subject="b",use="client"}`:     6,
		`aip_certificate_not_after_timestamp_seconds{file="",subject="b",use="client"}`:      8,
		"aip_revocation_source_up" + source:                                                  0,
		"aip_revocation_source_good_timestamp_seconds" + source:                              0,
		"aip_revocation_source_next_update_timestamp_seconds" + source:                       0,
		"aip_revocation_source_entries" + source:                                             0,
		"aip_revocation_source_unasked_total" + source:                                       0,
		`aip_handshakes_refused_total{reason="no_answer"}`:                                   1,
		`aip_certificates_refused_total{reason="no_answer"}`:                                 0,
		"aip_roots_not_in_use": 0,
	}
	got := metrictest.Gather(t, h)
	maps.DeleteFunc(got, func(name string, n float64) bool {
		return n == 0 && strings.Contains(name, "_refused_total{") && !strings.Contains(name, "no_answer")
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
}
