// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkTrust is what a call costs whose certificate is judged by a list.
func BenchmarkTrust(b *testing.B) {
	var issuer *x509.Certificate
	var signer *ecdsa.PrivateKey
	var chain []*x509.Certificate
	list := filepath.Join(b.TempDir(), "list.crl")
	for i := range 3 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 1), Subject: pkix.Name{CommonName: "a name"},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: i < 2,
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{byte(i)}}
		if issuer == nil {
			issuer, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
		if err != nil {
			b.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			b.Fatal(err)
		}
		chain = append([]*x509.Certificate{cert}, chain...)
		issuer, signer = cert, key
		if i == 1 {
			der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1),
				ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}, cert, key)
			if err == nil {
				err = os.WriteFile(list, der, 0o600)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	a := &App{Revocation: &Revocation{Sources: []RevocationSource{{Kind: "crl", Location: list}}}}
	if err := a.Revocation.provision(); err != nil {
		b.Fatal(err)
	}
	a.Revocation.start()
	defer a.Revocation.stop()
	t := trust{a}
	chains := [][]*x509.Certificate{chain}
	b.ReportAllocs()
	for b.Loop() {
		if err := t.Check(b.Context(), chains, nil); err != nil {
			b.Fatal(err)
		}
	}
}
