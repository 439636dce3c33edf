// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
)

// makePKI makes certificates for a test, in a directory of their own.
func makePKI(t *testing.T, o devpki.Options) *devpki.PKI {
	t.Helper()
	o.Dir = t.TempDir()
	pki, err := devpki.Make(o)
	if err != nil {
		t.Fatal(err)
	}
	return pki
}

// keyPair reads a certificate with its key.
func keyPair(t *testing.T, f devpki.File) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// rootsOf returns the root that has issued the certificates.
func rootsOf(t *testing.T, pki *devpki.PKI) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(pki.CA.Cert)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("%s holds no root: %v", pki.CA.Cert, err)
	}
	return roots
}
