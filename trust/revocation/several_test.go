// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// together returns a file of several files.
func together(all ...[]byte) []byte { return bytes.Join(all, nil) }

// TestSeveralLists reads files with several lists: all of them count.
//
// Promise: a Leader whose certificate was revoked goes on
func TestSeveralLists(t *testing.T) {
	p := newPKI(t)
	second := inPEM(p.crl(p.second, 1, []int64{8}))
	root := inPEM(p.crl(p.root, 1, []int64{p.first.SerialNumber.Int64()}))
	first, empty := inPEM(p.crl(p.first, 1, []int64{7})), inPEM(p.crl(p.first, 1, nil))
	newer, older := inPEM(p.crl(p.root, 3, []int64{9})), inPEM(p.crl(p.root, 2, []int64{8}))
	broken := p.crl(p.second, 1, nil)
	broken = inPEM(broken[:len(broken)-9])
	forged := p.crl(p.second, 1, nil)
	forged[len(forged)-1] ^= 1
	cert := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	leaf := func(issuer *authorityKey, serial int64) []*x509.Certificate { return p.leaf(issuer, serial) }
	for _, test := range []struct {
		name string
		file []byte
		err  string
		want map[*authorityKey]map[int64]Reason
	}{
		{"two issuers", together(first, second), "", map[*authorityKey]map[int64]Reason{
			p.first: {7: Revoked, 8: ""}, p.second: {8: Revoked}}},
		{"the other way round", together(second, first), "", map[*authorityKey]map[int64]Reason{
			p.first: {7: Revoked, 8: ""}, p.second: {8: Revoked}}},
		{"the root revokes an issuer", together(first, root), "",
			map[*authorityKey]map[int64]Reason{p.first: {8: Revoked}, p.root: {9: ""}}},
		{"a delta behind its base", together(empty, inPEM(p.crl(p.first, 2, []int64{8}, delta(1)))), "",
			map[*authorityKey]map[int64]Reason{p.first: {7: "", 8: Revoked}}},
		{"an older one, too", together(older, newer), "", map[*authorityKey]map[int64]Reason{p.root: {8: "", 9: Revoked}}},
		{"an older one behind", together(newer, older), "", map[*authorityKey]map[int64]Reason{p.root: {8: "", 9: Revoked}}},
		{"twice the same", together(first, first), "", map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}}},
		{"text and other blocks",
			together([]byte("Issuer: CN=First\r\n\r\n"), first, []byte("# the second\n"), cert, second), "",
			map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}, p.second: {8: Revoked}}},
		{"no line end between", together(bytes.TrimSpace(first), second), "",
			map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}, p.second: {8: Revoked}}},
		{"the label CRL", bytes.ReplaceAll(together(first, second), []byte("X509 CRL"), []byte("CRL")), "",
			map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}, p.second: {8: Revoked}}},
		{"one is broken", together(broken, second, first), "no certificate revocation list",
			map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}, p.second: {8: Revoked}}},
		{"the second one is broken", together(first, broken, second), "list 2 of the file: it is no certificate",
			map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}, p.second: {8: Revoked}}},
		{"one has no end", together(first[:len(first)/2], []byte("\n"), second), "no certificate revocation list",
			map[*authorityKey]map[int64]Reason{p.first: {8: NoAnswer}, p.second: {8: Revoked}}},
		{"the last one is cut", together(second, first[:len(first)-30]), "list 2 of the file",
			map[*authorityKey]map[int64]Reason{p.first: {8: NoAnswer}, p.second: {8: Revoked}}},
		{"one is forged", together(inPEM(forged), first), "signature",
			map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}, p.second: {8: NoAnswer}}},
		{"no list", cert, "PEM, but no X509 CRL", map[*authorityKey]map[int64]Reason{p.first: {8: NoAnswer}}},
		{"too large together", together(first, bytes.Repeat([]byte("text\n"), 4000), second), "bytes of text",
			map[*authorityKey]map[int64]Reason{p.first: {7: Revoked, 8: ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := start(t, Config{Sources: lists(write(t, "list", test.file)), MaxSize: 5000})
			// All issuers are known by then.
			for _, a := range []*authorityKey{p.root, p.first, p.second} {
				_ = c.Known(leaf(a, 100))
			}
			for issuer, serials := range test.want {
				for serial, want := range serials {
					if got := reason(t, c.Known(leaf(issuer, serial))); got != want {
						t.Errorf("%s, %d: %q, want %q", issuer.Subject, serial, got, want)
					}
				}
			}
			err := c.Health()[0].Err
			if test.err == "" && err != nil && !strings.Contains(err.Error(), errPending.Error()) ||
				test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("the health of the source is %v, want %q", err, test.err)
			}
		})
	}
}

// TestSeveralListsChange changes a file with two lists: a lost list stays until its end.
func TestSeveralListsChange(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		name := filepath.Join(t.TempDir(), "list")
		c := start(t, Config{Sources: lists(name)})
		first, second, third := p.leaf(p.first, 7), p.leaf(p.second, 7), p.leaf(p.root, 7)
		step := func(what string, want, wantSecond, wantThird Reason, err string, all ...[]byte) {
			t.Helper()
			write(t, name, together(all...))
			bubble.Pass(filesEvery + time.Second)
			for i, w := range []Reason{want, wantSecond, wantThird} {
				chain := [][]*x509.Certificate{first, second, third}[i]
				if got := reason(t, c.Known(chain)); got != w {
					t.Errorf("%s: chain %d is %q, want %q", what, i, got, w)
				}
			}
			got := c.Health()[0].Err
			if err == "" && got != nil || err != "" && (got == nil || !strings.Contains(got.Error(), err)) {
				t.Errorf("%s: %v, want %q", what, got, err)
			}
		}
		two := func(n int64, in ...int64) []byte { return inPEM(p.crl(p.first, n, in, times(0, 24*time.Hour))) }
		step("both", "", "", NoAnswer, "", two(1), inPEM(p.crl(p.second, 1, nil)))
		step("the second one revokes", "", Revoked, NoAnswer, "", two(1), inPEM(p.crl(p.second, 2, []int64{7})))
		step("the second one is missing", Revoked, Revoked, NoAnswer, "it has no list of CN=Second", two(2, 7))
		step("and another one is new", "", Revoked, NoAnswer, "it has no list of CN=Second", two(3),
			inPEM(p.crl(p.root, 1, []int64{7})))
		step("it is back, and older", "", Revoked, NoAnswer, "older", two(3), inPEM(p.crl(p.second, 1, nil)))
		step("all three", "", "", Revoked, "", two(3), inPEM(p.crl(p.second, 3, nil)), inPEM(p.crl(p.root, 1, []int64{7})))
		bubble.Pass(2 * time.Hour)
		step("those that have ended are gone", "", NoAnswer, NoAnswer, "", two(4))
	})
}

// TestSeveralListsKept starts again with several lists of a URL, without a network.
func TestSeveralListsKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		s := &site{}
		s.set(together(inPEM(p.crl(p.first, 5, []int64{7}, times(0, 24*time.Hour))), inPEM(p.crl(p.second, 5, []int64{7}))),
			`"5"`)
		config := Config{Sources: lists(listURL), Dir: filepath.Join(t.TempDir(), "revocation")}
		c := startAt(t, s, config)
		decides := func(what string, want Reason) {
			t.Helper()
			for _, issuer := range []*authorityKey{p.first, p.second} {
				if got := reason(t, c.Known(p.leaf(issuer, 7))); got != want {
					t.Errorf("%s: %s %q, want %q", what, issuer.Subject, got, want)
				}
			}
		}
		files := func(what string, want int) {
			t.Helper()
			if all, err := os.ReadDir(config.Dir); err != nil || len(all) != want {
				t.Errorf("%s: %d files, want %d (%v)", what, len(all), want, err)
			}
		}
		bubble.Pass(time.Second)
		decides("at first", Revoked)
		bubble.Pass(time.Second)
		files("at first", 2)
		c.Close()
		s.fail(http.StatusBadGateway, nil)
		c = startAt(t, s, config)
		decides("after a start without a network", Revoked)
		s.set(together(inPEM(p.crl(p.second, 6, nil)), inPEM(p.crl(p.first, 6, nil, times(0, 24*time.Hour)))), `"6"`)
		bubble.Pass(10 * time.Minute)
		decides("the next ones", "")
		files("the next ones", 2)
		c.Close()
		c = startAt(t, s, config)
		decides("after another start", "")
		bubble.Pass(2 * time.Hour)
		s.set(inPEM(p.crl(p.first, 7, nil, times(0, 24*time.Hour))), `"7"`)
		bubble.Pass(10 * time.Minute)
		files("the second one has ended", 1)
	})
}

// TestWaitingListIsAskedFor has a URL with a list waiting for its issuer: it is not fetched whole again, and a refused
// one is.
func TestWaitingListIsAskedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		s := &site{}
		s.set(p.crl(p.first, 5, []int64{7}, times(0, 24*time.Hour)), `"5"`)
		c := startAt(t, s, Config{Sources: lists(listURL), MaxAge: time.Hour})
		bubble.Pass(3*time.Hour + time.Second)
		if asked, whole := s.counts(); asked < 36 || whole != 1 {
			t.Errorf("%d requests and %d lists while it waits, want 1 list", asked, whole)
		}
		for serial, want := range map[int64]Reason{7: Revoked, 8: ""} {
			if got := reason(t, c.Known(p.leaf(p.first, serial))); got != want {
				t.Errorf("%d: %q, want %q", serial, got, want)
			}
		}
		forged := p.crl(p.second, 5, nil)
		forged[len(forged)-1] ^= 1
		other := &site{}
		other.set(forged, `"5"`)
		c = startAt(t, other, Config{Sources: lists(listURL)})
		bubble.Pass(6 * time.Minute)
		if got := reason(t, c.Known(p.leaf(p.second, 8))); got != NoAnswer {
			t.Errorf("by a forged list: %q", got)
		}
		_, before := other.counts()
		bubble.Pass(6 * time.Minute)
		if _, whole := other.counts(); before != 1 || whole == before {
			t.Errorf("a refused list was fetched whole %d times, and then %d times", before, whole-before)
		}
	})
}
