// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestSerialNumber holds that the serial number of a certificate is spelled as in the log and in a policy.
func TestSerialNumber(t *testing.T) {
	leaf := &x509.Certificate{SerialNumber: big.NewInt(0x0a1b2c)}
	shown := shownCertificates(agentca.Status{Certificates: []agentca.Held{{Pair: &tls.Certificate{Leaf: leaf}}}})
	if len(shown) != 1 || shown[0].Serial != "a1b2c" {
		t.Errorf("shown as %+v, want a1b2c", shown)
	}
}

// TestShownCertificates: each certificate says its state, and a Partner without one says why.
func TestShownCertificates(t *testing.T) {
	from, until := time.Unix(1000, 0).UTC(), time.Unix(2000, 0).UTC()
	leaf := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until,
		DNSNames: []string{"a.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	held := agentca.Held{Usage: agentca.ClientAuth, Pair: &tls.Certificate{Leaf: leaf}, Renewal: from}
	revoked := held
	revoked.Usage, revoked.Revoked = "", true
	shown := adminapi.Certificate{Partner: "A", Usage: string(agentca.ClientAuth), Serial: "1", From: from, Until: until,
		Renewal: from, Names: []string{"a.example", "127.0.0.1"}, State: "valid"}
	gone := shown
	gone.Usage, gone.State = "both", "revoked"
	retired := shown
	retired.State = "retired"
	for name, tc := range map[string]struct {
		of   agentca.Status
		want []adminapi.Certificate
	}{
		"missing": {agentca.Status{Err: errors.New("it is away"), Retry: until},
			[]adminapi.Certificate{{Partner: "A", Error: "it is away", NextTime: until, State: "missing"}}},
		"needs EAB":   {agentca.Status{NeedsEAB: true}, []adminapi.Certificate{{Partner: "A", State: "needs EAB"}}},
		"inactive":    {agentca.Status{Inactive: true}, []adminapi.Certificate{{Partner: "A", State: "inactive"}}},
		"two of them": {agentca.Status{Certificates: []agentca.Held{held, revoked}}, []adminapi.Certificate{shown, gone}},
		"retired":     {agentca.Status{Retired: true, Certificates: []agentca.Held{held}}, []adminapi.Certificate{retired}},
	} {
		tc.of.AIC = "A"
		if diff := cmp.Diff(tc.want, shownCertificates(tc.of)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoCertificates: certificates of a Partner are renewed and retired only where they are obtained.
func TestNoCertificates(t *testing.T) {
	p := newAlone(t, nil)
	var list adminapi.CertificateList
	if p.ask("GET", adminapi.Certificates, "", &list); len(list.Certificates) > 0 {
		t.Errorf("there are %+v", list)
	}
	const form = `Bad Request: the body must be {"partner": "…"}`
	p.refuses(map[string]string{
		"POST " + adminapi.RenewCertificates + " {}": form, "POST " + adminapi.RetireCertificates + " []": form,
		"POST " + adminapi.RenewCertificates + ` {"partner":"P"}`: `Not Found: no certificates are obtained for "P"`,
	})
}
