// SPDX-License-Identifier: Apache-2.0

// Package devpkitest makes and reads certificates for tests.
package devpkitest

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
)

// Make makes certificates in a directory of their own, until the test ends.
func Make(t testing.TB, o devpki.Options) *devpki.PKI {
	t.Helper()
	o.Dir = t.TempDir()
	pki, err := devpki.Make(o)
	if err != nil {
		t.Fatal(err)
	}
	return pki
}

// KeyPair reads a certificate with its key.
func KeyPair(t testing.TB, f devpki.File) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Roots returns the root that has issued the certificates.
func Roots(t testing.TB, pki *devpki.PKI) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(pki.CA.Cert)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("%s holds no root: %v", pki.CA.Cert, err)
	}
	return roots
}
