// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"
)

// FuzzReadList reads lists: the results are the same as crypto/x509's.
func FuzzReadList(f *testing.F) {
	p := newPKI(f)
	f.Add(p.crl(p.first, 1, []int64{1, 200, 70000}))
	f.Add(p.crl(p.second, 2, []int64{8}, delta(1)))
	f.Add(inPEM(p.crl(p.first, 1, nil)))
	f.Add(p.crl(p.first, 1, []int64{5}, func(l *x509.RevocationList) { l.RevokedCertificateEntries[0].ReasonCode = 8 }))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var der bytes.Buffer
		l, err := readOne(bytes.NewReader(raw), 1<<20, &der)
		if err != nil {
			return
		}
		want, err := x509.ParseRevocationList(der.Bytes())
		if err != nil {
			return // it is stricter with entries
		}
		signed := want.RawTBSRevocationList
		if h, is := hashes[l.algorithm]; is {
			digest := h.New()
			digest.Write(signed)
			signed = digest.Sum(nil)
		}
		if !l.from.Equal(want.ThisUpdate) || !l.until.Equal(want.NextUpdate) || !bytes.Equal(l.issuer, want.RawIssuer) ||
			!bytes.Equal(l.signed, signed) || l.entries != len(want.RevokedCertificateEntries) {
			t.Fatalf("read as %+v, want %+v", l, want)
		}
		for _, e := range want.RevokedCertificateEntries {
			n, ok := serialOf(e.SerialNumber.Bytes())
			if !ok || !l.serials.has(n) && !l.removed.has(n) {
				t.Fatalf("the entry %x is missing", e.SerialNumber)
			}
		}
		for _, s := range [...]serials{l.serials, l.removed} {
			if !slices.IsSortedFunc(s, func(a, b serial) int { return bytes.Compare(a[:], b[:]) }) {
				t.Fatal("the entries are not in order")
			}
		}
	})
}

// FuzzReadOCSP reads responses: a response that counts is signed by the issuer, and about the certificate.
func FuzzReadOCSP(f *testing.F) {
	p := newPKI(f)
	r := &responder{p: p}
	chain := p.leaf(p.first, 7)
	genuine := r.answer(chain[0])
	f.Add(genuine)
	other := newPKI(f)
	f.Add((&responder{p: other}).answer(chain[0]))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := readOCSP(raw, chain[0], chain[1], time.Now())
		if err != nil {
			return
		}
		if parsed, err := ocsp.ParseResponseForCert(raw, chain[0], chain[1]); err != nil || a.outcome != good ||
			!parsed.ThisUpdate.Equal(a.from) {
			t.Fatalf("%+v of a response that was not signed (%v)", a, err)
		}
	})
}

func FuzzReadACPS(f *testing.F) {
	f.Add([]byte(`{"serialNumber":"07","certificateStatus":"good","thisUpdate":"2000-01-01T00:00:00Z",` +
		`"nextUpdate":"2000-01-02T00:00:00+08:00"}`))
	now := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if a, err := readACPS(raw, big.NewInt(7), now); err == nil && a.checkTimes(now) != nil {
			t.Fatalf("%+v", a)
		}
	})
}

// TestHugeList reads a list of 100 000 entries; each takes the 20 bytes of its number.
func TestHugeList(t *testing.T) {
	p := newPKI(t)
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)}
	serial := new(big.Int).Lsh(big.NewInt(1), 158)
	for range 100_000 {
		serial = new(big.Int).Add(serial, big.NewInt(3))
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: serial, RevocationTime: time.Now()})
	}
	raw, err := x509.CreateRevocationList(nil, template, p.second.Certificate, p.second.key)
	if err != nil {
		t.Fatal(err)
	}
	name := write(t, "list", raw)
	leaf := p.leaf(p.second, 1, func(c *x509.Certificate) { c.SerialNumber = serial })
	next := p.leaf(p.second, 1, func(c *x509.Certificate) { c.SerialNumber = new(big.Int).Add(serial, big.NewInt(1)) })
	c := start(t, Config{Sources: lists(name)})
	for want, chain := range map[Reason][]*x509.Certificate{Revoked: leaf, "": next} {
		if got := reason(t, c.Known(chain)); got != want {
			t.Errorf("%q, want %q (%v)", got, want, c.Health()[0].Err)
		}
	}
	l := c.locations[0].current[0]
	if len(l.serials) != 100_000 || l.signed != nil {
		t.Errorf("%d serial numbers are kept, and %d bytes beside", len(l.serials), len(l.signed))
	}
	small := start(t, Config{Sources: lists(name), MaxSize: 1 << 20})
	if got := reason(t, small.Known(next)); got != NoAnswer {
		t.Errorf("over the limit: %q", got)
	}
}

// BenchmarkKnown decides about a chain of three by a list of 100 000 entries, by an answer, and, as for the calls of a
// connection, with the chain found good a moment ago.
func BenchmarkKnown(b *testing.B) {
	now := time.Now()
	issuer := &x509.Certificate{SerialNumber: big.NewInt(2), RawSubject: []byte("issuer"),
		RawSubjectPublicKeyInfo: make([]byte, 91)}
	root := &x509.Certificate{RawSubject: []byte("root"), RawSubjectPublicKeyInfo: make([]byte, 91)}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1 << 60), Raw: make([]byte, 1200),
		Subject: pkix.Name{CommonName: "caller"}}
	chain := []*x509.Certificate{cert, issuer, root}
	b.Run("list", func(b *testing.B) {
		c, err := New(Config{Sources: lists("/list")})
		if err != nil {
			b.Fatal(err)
		}
		at := c.locations[0]
		at.current = []*list{{serials: make(serials, 100_000), authority: issuer, location: at, from: now,
			until: now.Add(time.Hour)}}
		_, _ = c.learn(issuer), c.learn(root)
		c.arrange(*c.known.Load())
		for name, judge := range map[string]func([]*x509.Certificate) error{"judged": c.Kept, "again": c.Known} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := judge(chain); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
	b.Run("answer", func(b *testing.B) {
		r := &responder{}
		c, err := New(Config{Sources: []Source{{Kind: ACPS, Location: "http://localhost"}}})
		if err != nil {
			b.Fatal(err)
		}
		c.queriers[0].client.Transport = r
		if err := c.Check(b.Context(), chain, nil); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := c.Kept(chain); err != nil {
				b.Fatal(err)
			}
		}
	})
}
