// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/trust/revocation"
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
	checker, err := revocation.New(revocation.Config{Log: slog.New(slog.DiscardHandler),
		Sources: []revocation.Source{{Kind: revocation.CRL, Location: list}}})
	if err != nil {
		b.Fatal(err)
	}
	checker.Start()
	defer checker.Close()
	t := &NewProcess(Host{}).NewConfiguration().Trust
	t.Ask(checker)
	chains := [][]*x509.Certificate{chain}
	b.ReportAllocs()
	for b.Loop() {
		if err := t.Check(b.Context(), chains, nil); err != nil {
			b.Fatal(err)
		}
	}
}
