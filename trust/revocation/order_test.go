// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto/x509"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// transports gives requests to their host.
type transports map[string]http.RoundTripper

func (t transports) RoundTrip(r *http.Request) (*http.Response, error) {
	return t[r.URL.Host].RoundTrip(r)
}

func startWith(t *testing.T, hosts transports, config Config) *Checker {
	t.Helper()
	config.Log = slog.New(slog.DiscardHandler)
	for i := range config.Sources {
		if s := &config.Sources[i]; s.Kind == Registry {
			client, err := registry.New(registry.Config{URL: s.Location, Transport: hosts})
			if err != nil {
				t.Fatal(err)
			}
			s.Feed = registry.NewFeed(client, config.Log)
			t.Cleanup(s.Feed.Close)
		}
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	c.client.Transport = hosts
	for _, q := range c.queriers {
		q.client.Transport = hosts
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// TestOrder has a too old list before an answering responder, and behind it.
func TestOrder(t *testing.T) {
	p := newPKI(t)
	first := Source{Kind: OCSP, Location: "http://first"}
	second := Source{Kind: OCSP, Location: "http://second"}
	list := func(lists ...func(*x509.RevocationList)) Source {
		return Source{Kind: CRL, Location: write(t, "list", p.crl(p.first, 1, []int64{9}, lists...))}
	}
	old, ended := times(-3*time.Hour, time.Hour), times(-time.Hour, -time.Second)
	for _, test := range []struct {
		name          string
		sources       []Source
		maxAge        time.Duration
		one, two      *responder // default: the answer is good
		known, want   Reason
		asked, asked2 int
	}{
		{"a list covers", []Source{list(), first}, 2 * time.Hour, nil, nil, "", "", 0, 0},
		{"a list covers, behind", []Source{first, list()}, 2 * time.Hour, nil, nil, "", "", 0, 0},
		{"a list has ended", []Source{list(ended), first}, 0, nil, nil, "", "", 1, 0},
		{"a list is overdue", []Source{list(old), first}, 2 * time.Hour, nil, nil, Stale, Stale, 0, 0},
		{"a list is overdue, behind", []Source{first, list(old)}, 2 * time.Hour, nil, nil, "", "", 1, 0},
		{"a list is overdue, behind who is away", []Source{first, list(old)}, 2 * time.Hour, &responder{fails: 503}, nil, "",
			Stale, 1, 0},
		{"a list is overdue, another is not", []Source{list(old), list()}, 2 * time.Hour, nil, nil, "", "", 0, 0},
		{"the first answers", []Source{first, second}, 0, nil, &responder{fails: 503}, "", "", 1, 0},
		{"the first is away", []Source{first, second}, 0, &responder{fails: 404}, nil, "", "", 1, 1},
		{"the second is the first", []Source{second, first}, 0, nil, nil, "", "", 0, 1},
		{"the first revokes", []Source{first, second}, 0, &responder{status: map[int64]int{8: ocsp.Revoked}}, nil, "",
			Revoked, 1, 0},
		{"none answers", []Source{first, second}, 0, &responder{fails: 404}, &responder{fails: 429}, "", NoAnswer, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.one == nil {
				test.one = &responder{}
			}
			if test.two == nil {
				test.two = &responder{}
			}
			test.one.p, test.two.p = p, p
			c := startWith(t, transports{"first": test.one, "second": test.two},
				Config{Sources: test.sources, MaxAge: test.maxAge})
			chain := p.leaf(p.first, 8)
			if got := reason(t, c.Known(chain)); got != test.known {
				t.Errorf("Known: %q, want %q", got, test.known)
			}
			for range 2 {
				if got := reason(t, c.Check(t.Context(), chain, nil)); got != test.want {
					t.Errorf("Check: %q, want %q", got, test.want)
				}
			}
			if one, two := test.one.count(), test.two.count(); one != test.asked || two != test.asked2 {
				t.Errorf("%d and %d requests, want %d and %d", one, two, test.asked, test.asked2)
			}
		})
	}
}

// TestOverdueResponder has a responder healthy before, and away for longer than max_age: no other stands in for it.
func TestOverdueResponder(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		one, two := &responder{p: p}, &responder{p: p}
		c := startWith(t, transports{"first": one, "second": two}, Config{MaxAge: time.Hour, Grace: 10 * time.Hour,
			Sources: []Source{{Kind: OCSP, Location: "http://first"}, {Kind: OCSP, Location: "http://second"}}})
		chain := p.leaf(p.first, 8)
		check := func(what string, want Reason) {
			t.Helper()
			if got := reason(t, c.Check(t.Context(), chain, nil)); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
			bubble.Pass(time.Second)
		}
		check("at first", "")
		one.set(func() { one.fails = 503 })
		bubble.Pass(50 * time.Minute)
		check("away", "")
		if two.count() == 0 {
			t.Error("the second was not asked")
		}
		bubble.Pass(11 * time.Minute)
		check("away for too long, and the answer of the second is old", Stale)
		chain = p.leaf(p.first, 9)
		check("a new caller", Stale)
		one.set(func() { one.fails = 0 })
		bubble.Pass(askAgain)
		check("there again", "")
	})
}

// TestAnswersThatEndSoon has a responder with answers good for a minute: a caller is refused at no time.
func TestAnswersThatEndSoon(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		for name, config := range map[string]Config{"end": {}, "max_age": {MaxAge: time.Minute}} {
			r := &responder{p: p, change: func(r *ocsp.Response) { r.ThisUpdate = time.Now() }}
			if name == "end" {
				r.change = func(r *ocsp.Response) { r.ThisUpdate, r.NextUpdate = time.Now(), time.Time{} }
			}
			config.Sources = []Source{{Kind: OCSP, Location: responderURL}}
			c := startAsking(t, r, config)
			chain := p.leaf(p.first, 7)
			for range 60 {
				if got := reason(t, c.Check(t.Context(), chain, nil)); got != "" {
					t.Fatalf("%s: %q", name, got)
				}
				bubble.Pass(10 * time.Second)
			}
			if n := r.count(); n > 21 {
				t.Errorf("%s: %d requests in ten minutes", name, n)
			}
		}
	})
}

// TestStaplesDoNotPostpone has the holder of a certificate bring answers from before its revocation, in turns: its
// responder is asked all the same, as soon as the first one is due again.
//
// Promise: a Leader whose certificate was revoked goes on
func TestStaplesDoNotPostpone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		chain := p.leaf(p.first, 7)
		day := &responder{p: p, change: func(r *ocsp.Response) {
			r.ThisUpdate, r.NextUpdate = time.Now().Add(-time.Minute), time.Now().Add(24*time.Hour)
		}}
		var staples [][]byte
		for range 3 {
			staples = append(staples, day.answer(chain[0]))
			bubble.Pass(time.Minute)
		}
		r := &responder{p: p, status: map[int64]int{7: ocsp.Revoked}} // from now on
		c := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}})
		began := time.Now()
		for i := 0; reason(t, c.Check(t.Context(), chain, staples[i%3])) != Revoked; i++ {
			if time.Since(began) > 2*defaultRefresh {
				t.Fatalf("after %v, the certificate is let in, and the responder was asked %d times", time.Since(began),
					r.count())
			}
			_ = c.Check(t.Context(), chain, []byte("worthless"))
			bubble.Pass(time.Minute)
		}
	})
}

// TestStaples has callers bring an OCSP response.
func TestStaples(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		chain := p.leaf(p.first, 7)
		other := p.leaf(p.first, 8)
		own := p.issue(&x509.Certificate{}, p.first, ecdsaKey(t), nil)
		revoked := map[int64]int{7: ocsp.Revoked}
		good := &responder{p: p}
		ended := &responder{p: p, change: func(r *ocsp.Response) {
			r.ThisUpdate, r.NextUpdate = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
		}}
		old := &responder{p: p, change: func(r *ocsp.Response) {
			r.ThisUpdate, r.NextUpdate = time.Now().Add(-2*time.Hour), time.Now().Add(time.Hour)
		}}
		staples, query := Source{Kind: OCSP, Staples: true}, Source{Kind: OCSP, Location: responderURL}
		for _, test := range []struct {
			name    string
			sources []Source
			staple  []byte
			want    Reason
			asked   int
		}{
			{"good", []Source{staples}, good.answer(chain[0]), "", 0},
			{"good, where it may be asked", []Source{query}, good.answer(chain[0]), "", 0},
			{"none", []Source{staples}, nil, NoAnswer, 0},
			{"none, where it may be asked", []Source{query}, nil, "", 1},
			{"revoked", []Source{query}, (&responder{p: p, status: revoked}).answer(chain[0]), Revoked, 0},
			{"unknown", []Source{staples}, (&responder{p: p, status: map[int64]int{7: 2}}).answer(chain[0]), NoAnswer, 0},
			{"of another certificate", []Source{staples}, good.answer(other[0]), NoAnswer, 0},
			{"signed by another caller", []Source{staples}, (&responder{p: p, signer: own}).answer(chain[0]), NoAnswer, 0},
			{"ended", []Source{staples}, ended.answer(chain[0]), NoAnswer, 0},
			{"ended, where it may be asked", []Source{query}, ended.answer(chain[0]), "", 1},
			{"older than max_age", []Source{staples}, old.answer(chain[0]), Stale, 0},
			{"broken", []Source{staples}, []byte("x"), NoAnswer, 0},
			{"without OCSP", lists("/none"), good.answer(chain[0]), NoAnswer, 0},
			{"a list covers", append(lists(write(t, "list", p.crl(p.first, 1, []int64{7}))), query), good.answer(chain[0]),
				Revoked, 0},
		} {
			r := &responder{p: p}
			c := startAsking(t, r, Config{Sources: test.sources, MaxAge: 90 * time.Minute})
			for range 2 {
				if got := reason(t, c.Check(t.Context(), chain, test.staple)); got != test.want {
					t.Errorf("%s: %q, want %q", test.name, got, test.want)
				}
			}
			if r.count() != test.asked {
				t.Errorf("%s: %d requests, want %d", test.name, r.count(), test.asked)
			}
		}

		// An older staple does not replace an answer, and none a revocation.
		r := &responder{p: p, status: revoked}
		staple := good.answer(chain[0])
		c := startAsking(t, r, Config{Sources: []Source{query}})
		bubble.Pass(time.Hour)
		if got := reason(t, c.Check(t.Context(), chain, nil)); got != Revoked {
			t.Errorf("it is not revoked: %q", got)
		}
		for _, staple := range [][]byte{staple, good.answer(chain[0])} {
			if got := reason(t, c.Check(t.Context(), chain, staple)); got != Revoked {
				t.Errorf("a staple replaces that it is revoked: %q", got)
			}
		}
	})
}

// TestAnswersKept starts again with the answers kept on disk, without a network.
func TestAnswersKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		delegate := p.issue(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning}}, p.first,
			ecdsaKey(t), nil)
		r := &responder{p: p, status: map[int64]int{7: ocsp.Revoked}, signer: delegate}
		config := Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}, Dir: t.TempDir(), Grace: 2 * time.Hour}
		c := startAsking(t, r, config)
		revoked, fine := p.leaf(p.first, 7), p.leaf(p.first, 8)
		soon := p.leaf(p.first, 9, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(time.Minute) })
		check := func(what string, want map[Reason][]*x509.Certificate) {
			t.Helper()
			for want, chain := range want {
				if got := reason(t, c.Check(t.Context(), chain, nil)); got != want {
					t.Errorf("%s: %q, want %q", what, got, want)
				}
			}
		}
		check("at first", map[Reason][]*x509.Certificate{Revoked: revoked, "": fine})
		check("at first", map[Reason][]*x509.Certificate{"": soon})
		c.Close()
		r.set(func() { r.fails = 503 })

		before := r.count()
		c = startAsking(t, r, config)
		check("after a start", map[Reason][]*x509.Certificate{Revoked: revoked, "": fine})
		if n := r.count() - before; n != 0 {
			t.Errorf("%d requests for what was kept", n)
		}
		if got := reason(t, c.Known(revoked)); got != Revoked {
			t.Errorf("a handshake: %q", got)
		}
		c.Close()

		bubble.Pass(2 * time.Hour)
		c = startAsking(t, r, config)
		check("after its end, in its grace", map[Reason][]*x509.Certificate{Revoked: revoked, "": fine})
		if n := c.keptAnswers.Load(); n != 2 {
			t.Errorf("%d answers are kept, want those of certificates that have not expired", n)
		}
		c.Close()

		bubble.Pass(2 * time.Hour)
		c = startAsking(t, r, config)
		check("too long ago", map[Reason][]*x509.Certificate{Revoked: revoked, Stale: fine})
		c.Close()

		// An answer on disk for one certificate, or by another issuer, is not taken for another.
		genuine := c.answerName(fine[0])
		raw := (&responder{p: newPKI(t)}).answer(fine[0])
		write(t, genuine, raw)
		write(t, c.answerName(revoked[0]), (&responder{p: p}).answer(fine[0]))
		c = startAsking(t, r, config)
		check("forged", map[Reason][]*x509.Certificate{NoAnswer: fine})
		check("of another", map[Reason][]*x509.Certificate{NoAnswer: revoked})
	})
}
