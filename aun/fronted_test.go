// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"crypto/elliptic"
	"crypto/x509"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
)

// TestCertificateFor: the certificate of an agent has the agent's name and the gateway's key, is the same each time,
// and leads to no root, also if the gateway's own is among them.
func TestCertificateFor(t *testing.T) {
	pki := auntest.NewPKI(t)
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
		own := pki.IdentityFor("gateway.aid.test", curve, time.Hour)
		made := func(aid aun.AID) *x509.Certificate {
			t.Helper()
			c, err := own.CertificateFor(aid)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := made("reviewer.aid.test")
		switch {
		case c.Subject.CommonName != "reviewer.aid.test" || c.Issuer.CommonName != "gateway.aid.test" || c.IsCA:
			t.Errorf("it is that of %s by %s", c.Subject, c.Issuer)
		case !c.NotAfter.Equal(own.Chain[0].NotAfter) || !own.Key.PublicKey.Equal(c.PublicKey):
			t.Errorf("it is valid until %v", c.NotAfter)
		case !c.Equal(made("reviewer.aid.test")) || c.SerialNumber.Cmp(made("writer.aid.test").SerialNumber) == 0:
			t.Error("it is another one the next time, or has the number of another AID's")
		}
		if _, err := pki.Roots().Verify("", append([]*x509.Certificate{c}, own.Chain...)); err == nil {
			t.Error("it leads to a root")
		}
	}
}
