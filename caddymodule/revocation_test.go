// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/aip-gateway/aip-gateway/caddymodule/storememory"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// provisioned returns settings that are in use until the test ends.
func provisioned(t *testing.T, r *Revocation) *Revocation {
	t.Helper()
	if err := r.provision(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stop)
	return r
}

// started returns a configuration that has started, over a store in memory, until the test ends. before gets it before
// it starts.
func started(t *testing.T, before func(*node.Configuration)) *node.Configuration {
	t.Helper()
	c := node.NewProcess(node.Host{}).NewConfiguration()
	if err := c.Open(node.Store{Driver: new(storememory.Store), Name: "memory"}); err != nil {
		t.Fatal(err)
	}
	before(c)
	if err := c.Start(node.Settings{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestRevocationOverReload: a configuration with the same settings goes on with what is known, and one with others does
// not. What is no longer in use is not found again.
func TestRevocationOverReload(t *testing.T) {
	roots, err := os.ReadFile(makePKI(t, devpki.Options{}).CA.Cert)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, roots, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := func() *Revocation {
		return &Revocation{Sources: []RevocationSource{{Kind: "acps", Location: "https://ca.example", CA: []string{ca}}}}
	}
	before := provisioned(t, settings())
	if after := provisioned(t, settings()); after.checker != before.checker {
		t.Error("a reload forgets what was known")
	}
	changed := settings()
	changed.Sources[0].RefuseUnknown = true
	if provisioned(t, changed); changed.checker == before.checker {
		t.Error("a change of the settings is not put in force")
	}
	if roots, err = os.ReadFile(makePKI(t, devpki.Options{}).CA.Cert); err == nil {
		err = os.WriteFile(ca, roots, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if other := provisioned(t, settings()); other.checker == before.checker {
		t.Error("the new roots of a source are not put in force")
	}
	one := &Revocation{Sources: []RevocationSource{{Kind: "ocsp"}}}
	if err := one.provision(); err != nil {
		t.Fatal(err)
	}
	one.stop()
	one.stop()
	if two := provisioned(t, &Revocation{Sources: one.Sources}); two.checker == one.checker {
		t.Error("what has ended is used again")
	}
}

// TestVerifierOfRoot: a handshake is judged by the same sources as the calls that follow it.
func TestVerifierOfRoot(t *testing.T) {
	pki := makePKI(t, devpki.Options{})
	leaf, err := x509.ParseCertificate(keyPair(t, pki.Leader).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	root, err := x509.ParseCertificate(keyPair(t, pki.CA).Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	list := &Revocation{Sources: []RevocationSource{{Kind: string(revocation.CRL), Location: "none.crl"}}}
	asked := &Revocation{Sources: []RevocationSource{{Kind: string(revocation.OCSP), Location: "http://127.0.0.1:1"}}}
	chains := [][]*x509.Certificate{{leaf, root}}
	verify := func(ofRoot *Revocation) error {
		a := &App{Revocation: provisioned(t, list)}
		started(t, func(c *node.Configuration) {
			a.configuration = c
			c.Trust.Ask(a.Revocation.checker)
			if ofRoot == nil {
				return
			}
			if err := a.addRevocation(ofRoot, []*x509.Certificate{root}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(ofRoot.stop)
		})
		return (&RevocationVerifier{a}).VerifyClientCertificate(nil, chains)
	}
	if err := verify(nil); err == nil {
		t.Error("a certificate without a list is let in")
	}
	if err := verify(asked); err != nil {
		t.Errorf("a certificate that calls may ask about is refused in the handshake: %v", err)
	}
}
