// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/storememory"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// silent returns the log of a part of a process that logs nothing.
func silent(string) *slog.Logger { return slog.New(slog.DiscardHandler) }

// provisioned returns settings that a process uses until the test ends.
func provisioned(t *testing.T, p *Process, r *Revocation) *Revocation {
	t.Helper()
	if err := r.provision(p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.stop(p) })
	return r
}

// newHost returns the Host of a configuration before its start, which is in use until the test ends.
func newHost(t *testing.T) *Host {
	process := node.NewProcess(node.Host{})
	h := &Host{Process: NewProcess(process, silent), Configuration: process.NewConfiguration()}
	t.Cleanup(h.LeaveSources)
	return h
}

// start starts the configuration of a Host, over a store in memory, until the test ends.
func (h *Host) start(t *testing.T) {
	t.Helper()
	c := h.Configuration
	if err := c.Open(node.Store{Driver: new(storememory.Store), Name: "memory"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(node.Settings{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRevocationOverReload: a configuration with the same settings goes on with what is known, and one with others does
// not. What is no longer in use is not found again.
func TestRevocationOverReload(t *testing.T) {
	roots, err := os.ReadFile(devpkitest.Make(t, devpki.Options{}).CA.Cert)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, roots, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := func() *Revocation {
		return &Revocation{Sources: []RevocationSource{{Kind: "acps", Location: "https://ca.example"}},
			CA: []string{ca}}
	}
	p := NewProcess(node.NewProcess(node.Host{}), silent)
	before := provisioned(t, p, settings())
	if after := provisioned(t, p, settings()); after.checker != before.checker {
		t.Error("a reload forgets what was known")
	}
	changed := settings()
	changed.RefuseUnknown = true
	if provisioned(t, p, changed); changed.checker == before.checker {
		t.Error("a change of the settings is not put in force")
	}
	if roots, err = os.ReadFile(devpkitest.Make(t, devpki.Options{}).CA.Cert); err == nil {
		err = os.WriteFile(ca, roots, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if other := provisioned(t, p, settings()); other.checker == before.checker {
		t.Error("the new roots of a source are not put in force")
	}
	one := &Revocation{Sources: []RevocationSource{{Kind: "ocsp"}}}
	if err := one.provision(p); err != nil {
		t.Fatal(err)
	}
	one.stop(p)
	one.stop(p)
	if two := provisioned(t, p, &Revocation{Sources: one.Sources}); two.checker == one.checker {
		t.Error("what has ended is used again")
	}
}

// TestVerifierOfRoot: a handshake is judged by the same sources as the calls that follow it.
func TestVerifierOfRoot(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	leaf, root := devpkitest.KeyPair(t, pki.Leader).Leaf, devpkitest.KeyPair(t, pki.CA).Leaf
	crl := RevocationSource{Kind: string(revocation.CRL), Location: "none.crl"}
	asked := &Revocation{Sources: []RevocationSource{{Kind: string(revocation.OCSP), Location: "http://127.0.0.1:1"}}}
	chains := [][]*x509.Certificate{{leaf, root}}
	verify := func(below *Revocation) (*Host, error) {
		h := newHost(t)
		if err := h.Ask(&Revocation{Sources: []RevocationSource{crl}}); err != nil {
			t.Fatal(err)
		}
		if below != nil {
			if err := h.AskBelow([]*x509.Certificate{root}, below); err != nil {
				t.Fatal(err)
			}
		}
		h.start(t)
		return h, (&RevocationVerifier{h}).VerifyClientCertificate(nil, chains)
	}
	h, err := verify(nil)
	if err == nil {
		t.Error("a certificate without a list is let in")
	}
	if n := h.Process.node.RefusedHandshakes.All()["no_answer"]; n != 1 {
		t.Errorf("%d handshakes are counted as refused", n)
	}
	if _, err := verify(asked); err != nil {
		t.Errorf("a certificate that calls may ask about is refused in the handshake: %v", err)
	}
}

// TestAskBelow: settings that are the same have one checker, whatever their roots, and one root has one block.
func TestAskBelow(t *testing.T) {
	one := devpkitest.KeyPair(t, devpkitest.Make(t, devpki.Options{}).CA).Leaf
	two := devpkitest.KeyPair(t, devpkitest.Make(t, devpki.Options{}).CA).Leaf
	settings := func(kind revocation.Kind) *Revocation {
		return &Revocation{Sources: []RevocationSource{{Kind: string(kind), Location: "https://ca.example"}}}
	}
	h := newHost(t)
	if h.asks() {
		t.Error("sources were found before there are some")
	}
	for _, roots := range [][]*x509.Certificate{{one}, {one, two}} {
		if err := h.AskBelow(roots, settings(revocation.OCSP)); err != nil {
			t.Fatal(err)
		}
	}
	if h.asks() {
		t.Error("the sources of roots were taken for those of the app")
	}
	err := h.AskBelow([]*x509.Certificate{two}, settings(revocation.ACPS))
	if err == nil || !strings.Contains(err.Error(), "has two blocks revocation that differ") {
		t.Errorf("of two blocks for one root, the error is %v", err)
	}
	if err := h.Ask(settings(revocation.OCSP)); err != nil || !h.asks() {
		t.Errorf("the app has no sources: %v", err)
	}
	all := h.Checkers()
	if len(all) != 2 || all[0] != all[1] {
		t.Errorf("the checkers are %v, want the one of two roots, and the same for the app", all)
	}
	for _, root := range []*x509.Certificate{one, two} {
		if h.Configuration.Trust.CheckerOf([]*x509.Certificate{root}) != all[0] {
			t.Errorf("certificates below %s are not asked about", root.Subject)
		}
	}
}

// TestRevocationFiles: of the sources, lists without a URL are files.
func TestRevocationFiles(t *testing.T) {
	r := &Revocation{Sources: []RevocationSource{{Kind: string(revocation.CRL), Location: "one.crl"},
		{Kind: string(revocation.CRL), Location: "https://ca.example/two.crl"},
		{Kind: string(revocation.OCSP)}, {Kind: string(revocation.CRL), Location: "/three.pem"}}}
	if diff := cmp.Diff([]string{"one.crl", "/three.pem"}, r.Files()); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
}
