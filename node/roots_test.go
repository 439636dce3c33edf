// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// newRoot returns a root, and its PEM.
func newRoot(t *testing.T, name string) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// readCertificates reads a file as a host does.
func readCertificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return pemtext.Certificates(text, 10)
}

// TestRoots changes the file of a pool: what is taken out counts no more, what is put back does again, and what cannot
// be read changes nothing.
func TestRoots(t *testing.T) {
	_, one := newRoot(t, "one")
	_, two := newRoot(t, "two")
	file := filepath.Join(t.TempDir(), "roots.pem")
	write := func(parts ...[]byte) {
		t.Helper()
		if err := os.WriteFile(file, bytes.Join(parts, []byte("\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	process := NewProcess(Host{})
	c := process.NewConfiguration()
	write(one)
	p, err := process.Roots.Use([]string{file}, readCertificates)
	if err != nil {
		t.Fatal(err)
	}
	chains := [][]*x509.Certificate{p.Certificates()}
	for _, step := range []struct {
		name   string
		change func()
		counts bool
		log    string // one of its lines; empty for none
		health RootsHealth
	}{
		{"nothing", func() {}, true, "", RootsHealth{}},
		{"another root", func() { write(one, two) }, true, "not in use yet", RootsHealth{NotInUse: []string{"two"}}},
		{"another root, again", func() {}, true, "", RootsHealth{NotInUse: []string{"two"}}},
		{"taken out", func() { write(two) }, false, "taken out of its file, and",
			RootsHealth{Removed: []string{"one"}, NotInUse: []string{"two"}}},
		{"put back", func() { write(one) }, true, "there again", RootsHealth{}},
		{"empty", func() { write(nil) }, true, "cannot be read again", RootsHealth{Reason: "there is no"}},
		{"missing", func() { os.Remove(file) }, true, "cannot be read again", RootsHealth{Reason: "no such file"}},
		{"taken out after that", func() { write(two) }, false, "taken out of its file, and",
			RootsHealth{Removed: []string{"one"}, NotInUse: []string{"two"}}},
	} {
		var log bytes.Buffer
		step.change()
		process.Roots.read(slog.New(slog.NewTextHandler(&log, nil)))
		if err := c.Trust.Check(t.Context(), chains, nil); (err == nil) != step.counts {
			t.Errorf("%s: the certificate is judged %v", step.name, err)
		}
		if (step.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), step.log) {
			t.Errorf("%s: the log is %q, want %q", step.name, log.String(), step.log)
		}
		got := process.Roots.Health()[0]
		if strings.Contains(got.Reason, step.health.Reason) && step.health.Reason != "" {
			got.Reason = step.health.Reason
		}
		step.health.Files = file
		if diff := cmp.Diff(step.health, got); diff != "" {
			t.Errorf("%s: the health (-want +got):\n%s", step.name, diff)
		}
	}
	if got := process.RefusedCalls.All()[rootRemoved]; got != 2 {
		t.Errorf("%d calls are counted as refused by a root, want 2", got)
	}
	if p.Leave(); c.Trust.isJudging() || process.Roots.Health() != nil {
		t.Error("a pool that is not in use is looked after")
	}
}
