// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestSignatures reads lists signed in each accepted way, and one in another.
func TestSignatures(t *testing.T) {
	p := newPKI(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	byRSA := p.authority("RSA", p.root, key)
	for _, test := range []struct {
		algorithm x509.SignatureAlgorithm
		issuer    *authorityKey
	}{
		{x509.SHA256WithRSA, byRSA}, {x509.SHA384WithRSA, byRSA}, {x509.SHA512WithRSA, byRSA},
		{x509.SHA256WithRSAPSS, byRSA}, {x509.SHA384WithRSAPSS, byRSA}, {x509.SHA512WithRSAPSS, byRSA},
		{x509.ECDSAWithSHA256, p.first}, {x509.ECDSAWithSHA384, p.first}, {x509.ECDSAWithSHA512, p.first},
		{x509.PureEd25519, p.second},
	} {
		raw := p.crl(test.issuer, 1, []int64{7}, func(l *x509.RevocationList) { l.SignatureAlgorithm = test.algorithm })
		for _, raw := range [][]byte{raw, inPEM(raw)} {
			l, err := readOne(bytes.NewReader(raw), 1<<20, nil)
			if err == nil {
				err = l.verify(test.issuer.Certificate)
			}
			if err != nil || !l.serials.has(serial{19: 7}) {
				t.Errorf("%v: %v", test.algorithm, err)
			}
			for _, other := range []*authorityKey{p.root, byRSA, p.first, p.second} {
				if other != test.issuer && l.verify(other.Certificate) == nil {
					t.Errorf("%v: it is said to be signed by %s", test.algorithm, other.Subject)
				}
			}
		}
		// Each signed bit counts.
		signed := len(raw) - len(raw)/3
		for i := 0; i < signed; i += 7 {
			forged := bytes.Clone(raw)
			forged[i] ^= 1
			l, err := readOne(bytes.NewReader(forged), 1<<20, nil)
			if err == nil && l.verify(test.issuer.Certificate) == nil {
				t.Errorf("%v: byte %d may be another one", test.algorithm, i)
			}
		}
	}
	if _, ok := hashes[x509.SHA1WithRSA]; ok {
		t.Error("SHA-1 is accepted")
	}
}

// readOne reads the last list of a source.
func readOne(r io.Reader, max int64, copied io.Writer) (l *list, err error) {
	err = readLists(r, max, func(read func(io.Writer) (*list, error)) (err error) {
		l, err = read(copied)
		return err
	})
	return l, err
}

// endless is a list without an end.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	e.n += len(b)
	return len(b), nil
}

// TestReadIsBounded reads lists claiming to be larger than allowed, or than they are.
func TestReadIsBounded(t *testing.T) {
	for name, start := range map[string]string{
		"larger than the limit": "\x30\x84\x7f\xff\xff\xff\x30\x84\x7f\xff\xff\xf0",
		"a large head":          "\x30\x83\x0f\xff\xff\x30\x83\x0f\xff\xf0\x30\x83\x0f\x00\x00",
		"an indefinite length":  "\x30\x80\x30\x80",
		"PEM without an end":    "-----BEGIN X509 CRL-----\n",
	} {
		e := &endless{}
		l, err := readOne(io.MultiReader(bytes.NewReader([]byte(start)), e), 1<<20, nil)
		if err == nil {
			t.Errorf("%s: %+v", name, l)
		}
		if e.n > 256<<10 {
			t.Errorf("%s: %d bytes are read", name, e.n)
		}
	}
}

// hugeList returns a file with a list of many entries of an authority.
func hugeList(t testing.TB, issuer *authorityKey, entries int) string {
	t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}
	number := new(big.Int).Lsh(big.NewInt(1), 158)
	for range entries {
		number = new(big.Int).Add(number, big.NewInt(3))
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: number, RevocationTime: time.Now()})
	}
	raw, err := x509.CreateRevocationList(rand.Reader, template, issuer.Certificate, issuer.key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "list", raw)
}

// TestReadAsStream reads a list of 100 000 entries: it allocates the serial numbers, and little more.
func TestReadAsStream(t *testing.T) {
	const entries = 100_000
	p := newPKI(t)
	name := hugeList(t, p.first, entries)
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := readOne(file, 16<<20, nil)
	runtime.ReadMemStats(&after)
	if err != nil || l.entries != entries || l.verify(p.first.Certificate) != nil {
		t.Fatal(err)
	}
	if got, want := after.TotalAlloc-before.TotalAlloc, uint64(entries*20+entries*8); got > want {
		t.Errorf("%d bytes are allocated, want at most %d", got, want)
	}
}

// BenchmarkReadList reads a list of 400 000 entries.
func BenchmarkReadList(b *testing.B) {
	p := newPKI(b)
	name := hugeList(b, p.first, 400_000)
	b.ReportAllocs()
	for b.Loop() {
		file, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := readOne(file, 16<<20, nil); err != nil {
			b.Fatal(err)
		}
		_ = file.Close()
	}
}

// TestNothingIsLeft has lists waiting for their issuer, or refused: no file is left of them.
func TestNothingIsLeft(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		s, dir := &site{}, filepath.Join(t.TempDir(), "kept")
		s.set(p.crl(p.first, 5, nil), "")
		c := startAt(t, s, Config{Sources: lists(listURL), Dir: dir})
		count := func(what string, want int) {
			t.Helper()
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != want {
				t.Errorf("%s: %d files, want %d (%v)", what, len(files), want, err)
			}
		}
		bubble.Pass(time.Second)
		count("it waits for its issuer", 1)
		s.set(p.crl(p.first, 6, nil), "")
		bubble.Pass(6 * time.Minute)
		count("the next one waits", 1)
		if got := reason(t, c.Known(p.leaf(p.first, 7))); got != "" {
			t.Errorf("its issuer is known: %q", got)
		}
		count("it is in use", 1)
		for _, raw := range [][]byte{
			p.crl(p.first, 5, nil), p.crl(p.first, 6, nil)[:50], []byte("x"), p.crl(p.second, 9, nil),
		} {
			s.set(raw, "")
			bubble.Pass(6 * time.Minute)
		}
		c.Close()
		count("at the end", 1)
		if _, err := os.Stat(cacheName(dir, listURL)); err != nil {
			t.Error(err)
		}
	})
}
