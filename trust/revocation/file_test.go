// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"context"
	"crypto/x509"
	"encoding/asn1"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestLists asks about certificates by lists in files.
func TestLists(t *testing.T) {
	p := newPKI(t)
	other := newPKI(t)
	noSign := p.authority("No lists", p.root, ecdsaKey(t), func(c *x509.Certificate) {
		c.KeyUsage = x509.KeyUsageCertSign
	})
	first := p.crl(p.first, 1, []int64{7, 9})
	broken := append([]byte(nil), first...)
	broken[len(broken)-1] ^= 1
	points := func(c *x509.Certificate) { c.CRLDistributionPoints = []string{"http://ca/part1"} }
	type idp struct {
		Point []asn1.RawValue `asn1:"optional,tag:0"`
		Users bool            `asn1:"optional,tag:1"`
		CAs   bool            `asn1:"optional,tag:2"`
		Other bool            `asn1:"optional,tag:4"`
	}
	uri := func(s string) []asn1.RawValue {
		name, err := asn1.Marshal(asn1.RawValue{Class: 2, Tag: 6, Bytes: []byte(s)})
		if err != nil {
			t.Fatal(err)
		}
		return []asn1.RawValue{{Class: 2, Tag: 0, IsCompound: true, Bytes: name}}
	}
	scoped := func(s idp) []byte { return p.crl(p.first, 1, []int64{7}, extension(oidScope, true, s)) }
	reasons := func(code int) func(*x509.RevocationList) {
		return func(l *x509.RevocationList) {
			for i := range l.RevokedCertificateEntries {
				l.RevokedCertificateEntries[i].ReasonCode = code
			}
		}
	}
	for _, test := range []struct {
		name  string
		lists [][]byte
		chain []*x509.Certificate
		want  Reason
		err   string // of the first source
	}{
		{"good", [][]byte{first}, p.leaf(p.first, 8), "", ""},
		{"revoked", [][]byte{first}, p.leaf(p.first, 7), Revoked, ""},
		{"PEM", [][]byte{inPEM(first)}, p.leaf(p.first, 9), Revoked, ""},
		{"Ed25519", [][]byte{p.crl(p.second, 1, []int64{7})}, p.leaf(p.second, 7), Revoked, ""},
		{"Ed25519, good", [][]byte{p.crl(p.second, 1, []int64{7})}, p.leaf(p.second, 8), "", ""},
		{"empty", [][]byte{p.crl(p.first, 1, nil)}, p.leaf(p.first, 7), "", ""},
		{"of another issuer", [][]byte{first}, p.leaf(p.second, 7), NoAnswer, "has not been seen"},
		{"of another issuer of that name", [][]byte{other.crl(other.first, 1, []int64{7})}, p.leaf(p.first, 7), NoAnswer,
			"has not been seen"},
		{"of each issuer", [][]byte{first, p.crl(p.second, 1, []int64{8})}, p.leaf(p.second, 8), Revoked,
			"has not been seen"},
		{"of the root", [][]byte{p.crl(p.root, 1, []int64{7})}, p.leaf(p.root, 7), Revoked, ""},
		{"of the root, missing", [][]byte{first}, p.leaf(p.root, 7), NoAnswer, "has not been seen"},
		{"of the root, which revokes the issuer",
			[][]byte{p.crl(p.root, 1, []int64{p.first.SerialNumber.Int64()}), first}, p.leaf(p.first, 8), Revoked, ""},
		{"forged", [][]byte{broken}, p.leaf(p.first, 8), NoAnswer, "signature"},
		{"of a key that is not for lists", [][]byte{p.crl(&authorityKey{signs(noSign.Certificate), noSign.key}, 1, nil)},
			p.leaf(noSign, 8), NoAnswer, "not for lists"},
		{"no list", [][]byte{[]byte("<html>")}, p.leaf(p.first, 8), NoAnswer, "no certificate revocation list"},
		{"other PEM", [][]byte{[]byte("-----BEGIN X-----\n-----END X-----\n")}, p.leaf(p.first, 8), NoAnswer, "PEM"},
		{"cut", [][]byte{first[:len(first)-9]}, p.leaf(p.first, 8), NoAnswer, "no certificate revocation list"},
		{"stale", [][]byte{p.crl(p.first, 1, nil, times(-2*time.Hour, -time.Second))}, p.leaf(p.first, 8), Stale, ""},
		{"stale and revoked", [][]byte{p.crl(p.first, 1, []int64{8}, times(-2*time.Hour, -time.Second))},
			p.leaf(p.first, 8), Revoked, ""},
		{"of the future", [][]byte{p.crl(p.first, 1, nil, times(time.Hour, 2*time.Hour))}, p.leaf(p.first, 8), NoAnswer,
			"begins in"},
		{"unknown critical extension", [][]byte{p.crl(p.first, 1, nil, extension(asn1.ObjectIdentifier{1, 2, 3}, true, 1))},
			p.leaf(p.first, 8), NoAnswer, "not known here, 1.2.3"},
		{"unknown extension", [][]byte{p.crl(p.first, 1, nil, extension(asn1.ObjectIdentifier{1, 2, 3}, false, 1))},
			p.leaf(p.first, 8), "", ""},
		{"on hold", [][]byte{p.crl(p.first, 1, []int64{8}, reasons(6))}, p.leaf(p.first, 8), Revoked, ""},
		{"removed, but not in a delta", [][]byte{p.crl(p.first, 1, []int64{8}, reasons(8))}, p.leaf(p.first, 8), Revoked, ""},
		{"delta", [][]byte{first, p.crl(p.first, 2, []int64{8}, delta(1))}, p.leaf(p.first, 8), Revoked, ""},
		{"delta before its base", [][]byte{p.crl(p.first, 2, []int64{8}, delta(1)), first}, p.leaf(p.first, 7), Revoked, ""},
		{"delta, good", [][]byte{first, p.crl(p.first, 2, []int64{8}, delta(1))}, p.leaf(p.first, 10), "", ""},
		{"delta without its base", [][]byte{p.crl(p.first, 2, []int64{8}, delta(1))}, p.leaf(p.first, 10), NoAnswer, ""},
		{"delta without its base, revoked", [][]byte{p.crl(p.first, 2, []int64{8}, delta(1))}, p.leaf(p.first, 8), Revoked,
			""},
		{"delta that removes", [][]byte{first, p.crl(p.first, 2, []int64{7}, delta(1), reasons(8))}, p.leaf(p.first, 7), "",
			""},
		{"delta to a newer base", [][]byte{first, p.crl(p.first, 4, []int64{7}, delta(3), reasons(8))},
			p.leaf(p.first, 7), Revoked, ""},
		{"delta that makes a stale base fresh", [][]byte{p.crl(p.first, 1, nil, times(-2*time.Hour, -time.Second)),
			p.crl(p.first, 2, nil, delta(1))}, p.leaf(p.first, 7), "", ""},
		{"part", [][]byte{scoped(idp{Point: uri("http://ca/part1")})}, p.leaf(p.first, 8, points), "", ""},
		{"part, revoked", [][]byte{scoped(idp{Point: uri("http://ca/part1")})}, p.leaf(p.first, 7, points), Revoked, ""},
		{"another part", [][]byte{scoped(idp{Point: uri("http://ca/part2")})}, p.leaf(p.first, 8, points), NoAnswer, ""},
		{"users", [][]byte{scoped(idp{Users: true})}, p.leaf(p.first, 8), "", ""},
		{"issuers", [][]byte{scoped(idp{CAs: true})}, p.leaf(p.first, 8), NoAnswer, ""},
		{"indirect", [][]byte{scoped(idp{Other: true})}, p.leaf(p.first, 8), NoAnswer, "other issuers"},
		{"a root alone", [][]byte{first}, []*x509.Certificate{p.root.Certificate}, "", "has not been seen"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var config Config
			for _, raw := range test.lists {
				config.Sources = append(config.Sources, lists(write(t, "list", raw))...)
			}
			c := start(t, config)
			if got := reason(t, c.Known(test.chain)); got != test.want {
				t.Errorf("Known: %q, want %q", got, test.want)
			}
			if got := reason(t, c.Check(t.Context(), test.chain, nil)); got != test.want {
				t.Errorf("Check: %q, want %q", got, test.want)
			}
			err := c.Health()[0].Err
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("the health of the source is %v, want %q", err, test.err)
			}
		})
	}
}

// signs returns a certificate as it would be if its key were for lists, to make crypto/x509 sign one.
func signs(cert *x509.Certificate) *x509.Certificate {
	c := *cert
	c.KeyUsage |= x509.KeyUsageCRLSign
	return &c
}

// TestFileChanges changes a file: a worse list never replaces a good one.
func TestFileChanges(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		other := newPKI(t)
		name := filepath.Join(t.TempDir(), "list")
		c := start(t, Config{Sources: lists(name), MaxSize: 2000})
		chain := p.leaf(p.first, 7)
		step := func(what string, raw []byte, want Reason, change bool) {
			t.Helper()
			if raw != nil {
				write(t, name, raw)
			}
			before, changed := c.Generation(), c.Changed()
			bubble.Pass(filesEvery + time.Second)
			if got := reason(t, c.Known(chain)); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
			select {
			case <-changed:
				if !change || c.Generation() == before {
					t.Errorf("%s: it is said to have changed", what)
				}
			default:
				if change || c.Generation() != before {
					t.Errorf("%s: it is not said to have changed", what)
				}
			}
		}
		good := p.crl(p.first, 5, nil)
		forged := append([]byte(nil), p.crl(p.first, 6, []int64{7})...)
		forged[len(forged)-1] ^= 1
		step("no file", nil, NoAnswer, false)
		step("first list", good, "", true)
		step("nothing new", nil, "", false)
		step("forged", forged, "", false)
		step("older", p.crl(p.first, 4, []int64{7}), "", false)
		step("broken", []byte("x"), "", false)
		step("empty", []byte{}, "", false)
		step("of another issuer", p.crl(p.second, 9, []int64{7}), "", false)
		step("of another key", other.crl(other.first, 9, []int64{7}), "", false)
		step("delta", p.crl(p.first, 6, []int64{7}, delta(5)), "", false)
		step("too large", make([]byte, 2001), "", false)
		step("newer", p.crl(p.first, 6, []int64{7}), Revoked, true)
		step("newer, without it", p.crl(p.first, 7, nil), "", true)
		if want, got := "7", c.Health()[0]; got.Number != want || got.Err != nil {
			t.Errorf("the source has list %s (%v), want %s", got.Number, got.Err, want)
		}
		bubble.Pass(2 * time.Hour)
		step("stale", nil, Stale, false)
	})
}

// TestAge asks about a certificate while its list becomes old.
func TestAge(t *testing.T) {
	for _, test := range []struct {
		name   string
		config Config
		steps  map[time.Duration]Reason // after the start; the list ends after an hour, and is an hour old
	}{
		{"strict", Config{}, map[time.Duration]Reason{59 * time.Minute: "", 61 * time.Minute: Stale}},
		{"grace", Config{Grace: time.Hour}, map[time.Duration]Reason{119 * time.Minute: "", 121 * time.Minute: Stale}},
		{"max_age", Config{MaxAge: 90 * time.Minute, Grace: time.Hour},
			map[time.Duration]Reason{29 * time.Minute: "", 31 * time.Minute: Stale}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newPKI(t)
				test.config.Sources = lists(write(t, "list", p.crl(p.first, 1, []int64{9})))
				c := start(t, test.config)
				for after := time.Duration(0); after < 4*time.Hour; after += time.Minute {
					if want, is := test.steps[after]; is {
						if got := reason(t, c.Known(p.leaf(p.first, 8))); got != want {
							t.Errorf("after %v: %q, want %q", after, got, want)
						}
						if got := reason(t, c.Known(p.leaf(p.first, 9))); got != Revoked {
							t.Errorf("after %v: a revoked certificate is %q", after, got)
						}
					}
					bubble.Pass(time.Minute)
				}
			})
		})
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{}, "no source"},
		{Config{Sources: lists("a.crl")}, "no absolute path"},
		{Config{Sources: lists("/a", "/a")}, "twice"},
		{Config{Sources: lists("/a"), MaxSize: -1}, "size"},
		{Config{Sources: lists("/a"), Grace: -1}, "times"},
		{Config{Sources: lists("/a"), Rate: -1}, "rate"},
	} {
		if _, err := New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.config, err, test.want)
		}
	}
}

// TestListsOfANewIssuer: an issuer seen the first time is not known before the lists waiting for it are: else a call at
// that moment would be decided without them.
func TestListsOfANewIssuer(t *testing.T) {
	p := newPKI(t)
	chain := p.leaf(p.first, 7)
	var c *Checker
	logged := 0
	log := slog.New(watching{slog.DiscardHandler, func() {
		if a := find(*c.known.Load(), chain[1]); a != nil && len(a.lists) == 0 {
			t.Error("the issuer is known, and its list is not")
		}
		logged++
	}})
	c, err := New(Config{Sources: lists(write(t, filepath.Join(t.TempDir(), "list"), p.crl(p.first, 5, []int64{7}))),
		Log: log})
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	t.Cleanup(c.Close)
	waiting := logged
	if got := reason(t, c.Known(chain)); got != Revoked {
		t.Errorf("the certificate is %q, want %q", got, Revoked)
	}
	if logged == waiting {
		t.Error("the list was in use before its issuer was seen")
	}
}

// watching is a handler calling a function at each record.
type watching struct {
	slog.Handler
	record func()
}

func (watching) Enabled(context.Context, slog.Level) bool { return true }

func (w watching) Handle(context.Context, slog.Record) error {
	w.record()
	return nil
}
