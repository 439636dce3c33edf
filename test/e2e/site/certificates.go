// SPDX-License-Identifier: Apache-2.0

package site

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/identity"
)

// Trusted returns the root that all tests share.
func Trusted(t testing.TB) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(devpkitest.KeyPair(t, Certificates(t).CA).Leaf)
	return roots
}

var pki struct {
	once sync.Once
	dir  string
	made *devpki.PKI
	err  error
}

// Certificates returns the certificates that all tests share.
func Certificates(t testing.TB) *devpki.PKI {
	t.Helper()
	pki.once.Do(func() {
		if pki.dir, pki.err = os.MkdirTemp("", "aip-e2e-pki-"); pki.err == nil {
			pki.made, pki.err = devpki.Make(devpki.Options{Dir: pki.dir})
		}
	})
	if pki.err != nil {
		t.Fatal(pki.err)
	}
	return pki.made
}

// Issue makes a client certificate of the shared root that devpki would not make.
func Issue(t testing.TB, commonName string, names ...string) tls.Certificate {
	t.Helper()
	return IssueFor(t, time.Hour, commonName, names...)
}

// IssueFor makes one that is valid for a time.
func IssueFor(t testing.TB, lifetime time.Duration, commonName string, names ...string) tls.Certificate {
	t.Helper()
	ca := devpkitest.KeyPair(t, Certificates(t).CA)
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		u, err := url.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.Leaf, key.Public(), ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// WritePair writes a certificate with those of its issuers, and its key, into files.
func (s *Site) WritePair(name string, pair tls.Certificate) devpki.File {
	s.T.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	NoError(s.T, err)
	var text []byte
	for _, der := range pair.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	f := devpki.File{Cert: s.InDir(name + ".pem"), Key: s.InDir(name + "-key.pem"),
		AIC: identity.AIC(pair.Leaf.Subject.CommonName)}
	ReplaceFile(s.T, f.Cert, text)
	ReplaceFile(s.T, f.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	return f
}

// ReplaceFile replaces a file at once.
func ReplaceFile(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
