// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// responder is an OCSP responder without a network; after /acps-atr-v2/ it gives the JSON status of ACPs.
type responder struct {
	p      *pki
	mu     sync.Mutex
	signer *authorityKey // default: the first authority
	issuer *authorityKey // claimed issuer of the certificates in its answers; default: the first authority
	status map[int64]int // by serial number; default: good
	change func(*ocsp.Response)
	fails  int // the status of HTTP; 0 for none
	header http.Header
	delay  time.Duration
	asked  int
}

func (r *responder) set(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *responder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// answer returns an answer about a certificate.
func (r *responder) answer(serial *x509.Certificate) []byte {
	issuer, signer := r.p.first, r.signer
	if r.issuer != nil {
		issuer = r.issuer
	}
	template := ocsp.Response{Status: r.status[serial.SerialNumber.Int64()], SerialNumber: serial.SerialNumber,
		ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour), IssuerHash: crypto.SHA1}
	if template.Status == ocsp.Revoked {
		template.RevokedAt = time.Now().Add(-time.Hour)
	}
	by := issuer
	if signer != nil {
		by, template.Certificate = signer, signer.Certificate
	}
	if r.change != nil {
		r.change(&template)
	}
	raw, err := ocsp.CreateResponse(issuer.Certificate, by.Certificate, template, by.key)
	if err != nil {
		panic(err)
	}
	return raw
}

// RoundTrip implements http.RoundTripper.
func (r *responder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.asked++
	delay := r.delay
	r.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{}}
	var body []byte
	switch {
	case r.fails != 0:
		answer.StatusCode, answer.Status = r.fails, fmt.Sprint(r.fails)
		if r.header != nil {
			answer.Header = r.header
		}
	case request.Method == http.MethodGet:
		digits := strings.TrimPrefix(request.URL.Path, "/acps-atr-v2/ocsp/certificate/")
		var serial int64
		_, _ = fmt.Sscanf(digits, "%X", &serial)
		body, _ = json.Marshal(map[string]string{"serialNumber": digits,
			"certificateStatus": []string{"good", "revoked", "unknown"}[r.status[serial]],
			"thisUpdate":        time.Now().Format(time.RFC3339Nano),
			"nextUpdate":        time.Now().Add(time.Hour).Format(time.RFC3339)})
	default:
		raw, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		asked, err := ocsp.ParseRequest(raw)
		if err != nil {
			return nil, err
		}
		body = r.answer(&x509.Certificate{SerialNumber: asked.SerialNumber})
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// startAsking starts a Checker with its queries going to a responder.
func startAsking(t *testing.T, r *responder, config Config) *Checker {
	t.Helper()
	config.Log = slog.New(slog.DiscardHandler)
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range c.queriers {
		q.client.Transport = r
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

const responderURL = "http://ca.example/ocsp"

// TestOCSP asks a responder with right and wrong answers.
func TestOCSP(t *testing.T) {
	p := newPKI(t)
	delegate := func(issuer *authorityKey, change func(*x509.Certificate)) *authorityKey {
		template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning},
			KeyUsage: x509.KeyUsageDigitalSignature}
		return p.issue(template, issuer, ecdsaKey(t), []func(*x509.Certificate){change})
	}
	none := func(*x509.Certificate) {}
	for _, test := range []struct {
		name   string
		r      *responder
		config Source
		want   Reason
	}{
		{"good", &responder{}, Source{}, ""},
		{"revoked", &responder{status: map[int64]int{7: ocsp.Revoked}}, Source{}, Revoked},
		{"unknown", &responder{status: map[int64]int{7: ocsp.Unknown}}, Source{}, NoAnswer},
		{"unknown refuses", &responder{status: map[int64]int{7: ocsp.Unknown}}, Source{}, Unknown},
		{"SHA-256", &responder{change: func(r *ocsp.Response) { r.IssuerHash = crypto.SHA256 }}, Source{}, ""},
		{"delegate", &responder{signer: delegate(p.first, none)}, Source{}, ""},
		{"delegate revokes", &responder{signer: delegate(p.first, none), status: map[int64]int{7: 1}}, Source{}, Revoked},
		{"delegate without the usage", &responder{signer: delegate(p.first, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		})}, Source{}, NoAnswer},
		{"delegate for any usage", &responder{signer: delegate(p.first, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
		})}, Source{}, NoAnswer},
		{"delegate, expired", &responder{signer: delegate(p.first, func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		})}, Source{}, NoAnswer},
		{"delegate, not yet valid", &responder{signer: delegate(p.first, func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(time.Hour)
		})}, Source{}, NoAnswer},
		{"delegate of another issuer", &responder{signer: delegate(p.second, none)}, Source{}, NoAnswer},
		{"signed by another caller", &responder{signer: p.issue(&x509.Certificate{}, p.first, ecdsaKey(t), nil)}, Source{},
			NoAnswer},
		{"about another issuer's", &responder{signer: delegate(p.first, none), issuer: p.second}, Source{}, NoAnswer},
		{"about another certificate", &responder{change: func(r *ocsp.Response) { r.SerialNumber = p.root.SerialNumber }},
			Source{}, NoAnswer},
		{"ended", &responder{change: func(r *ocsp.Response) {
			r.ThisUpdate, r.NextUpdate = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
		}}, Source{}, NoAnswer},
		{"of the future", &responder{change: func(r *ocsp.Response) { r.ThisUpdate = time.Now().Add(20 * time.Minute) }},
			Source{}, NoAnswer},
		{"without an end", &responder{change: func(r *ocsp.Response) {
			r.ThisUpdate, r.NextUpdate = time.Now(), time.Time{}
		}}, Source{}, ""},
		{"without an end, of a clock that is behind", &responder{change: func(r *ocsp.Response) {
			r.ThisUpdate, r.NextUpdate = time.Now().Add(-skew), time.Time{}
		}}, Source{}, ""},
		{"without an end, old", &responder{change: func(r *ocsp.Response) {
			r.ThisUpdate, r.NextUpdate = time.Now().Add(-skew-2*time.Minute), time.Time{}
		}}, Source{}, NoAnswer},
		{"not found", &responder{fails: 404}, Source{}, NoAnswer},
		{"acps", &responder{}, Source{Kind: ACPS, Location: "http://127.0.0.1:9003"}, ""},
		{"acps, revoked", &responder{status: map[int64]int{7: 1}}, Source{Kind: ACPS, Location: "http://localhost"}, Revoked},
		{"acps, unknown", &responder{status: map[int64]int{7: 2}}, Source{Kind: ACPS, Location: "http://[::1]:9003/"},
			NoAnswer},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.r.p = p
			if test.config.Kind == "" {
				test.config.Kind, test.config.Location = OCSP, responderURL
			}
			c := startAsking(t, test.r, Config{Sources: []Source{test.config}, RefuseUnknown: test.want == Unknown})
			chain := p.leaf(p.first, 7)
			if err := c.Known(chain); err != nil || test.r.count() != 0 {
				t.Errorf("Known: %v after %d requests", err, test.r.count())
			}
			for range 2 {
				if got := reason(t, c.Check(t.Context(), chain, nil)); got != test.want {
					t.Errorf("Check: %q, want %q (%v)", got, test.want, c.Health()[0].Err)
				}
				shut := test.want
				if test.config.Kind == OCSP && shut == NoAnswer {
					shut = "" // the call may bring a staple
				}
				if got := reason(t, c.Known(chain)); got != shut {
					t.Errorf("Known afterwards: %q, want %q", got, shut)
				}
			}
			if test.r.count() != 1 {
				t.Errorf("%d requests, want 1", test.r.count())
			}
		})
	}
}

// TestWithoutEnd: an answer without an end, and so counting for minutes alone, is reported so once it has ended.
func TestWithoutEnd(t *testing.T) {
	p := newPKI(t)
	chain := p.leaf(p.first, 7)
	r := &responder{p: p, change: func(r *ocsp.Response) {
		r.ThisUpdate, r.NextUpdate = time.Now().Add(-time.Hour), time.Time{}
	}}
	_, err := readOCSP(r.answer(chain[0]), chain[0], chain[1], time.Now())
	if err == nil || !strings.Contains(err.Error(), "has no nextUpdate") {
		t.Errorf("%v, want that it has no nextUpdate", err)
	}
}

// TestResponderOfCertificate asks the responder named by a certificate.
func TestResponderOfCertificate(t *testing.T) {
	p := newPKI(t)
	r := &responder{p: p}
	c := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP}}})
	named := p.leaf(p.first, 7, func(c *x509.Certificate) { c.OCSPServer = []string{"ldap://x", responderURL} })
	if got := reason(t, c.Check(t.Context(), named, nil)); got != "" {
		t.Errorf("named: %q", got)
	}
	if got := reason(t, c.Check(t.Context(), p.leaf(p.first, 8), nil)); got != NoAnswer || r.count() != 1 {
		t.Errorf("not named: %q after %d requests", got, r.count())
	}
}

// TestListFirst asks nothing about certificates covered by a list.
func TestListFirst(t *testing.T) {
	p := newPKI(t)
	r := &responder{p: p}
	c := startAsking(t, r, Config{Sources: append([]Source{{Kind: OCSP, Location: responderURL}},
		lists(write(t, "list", p.crl(p.first, 1, []int64{7})))...)})
	for serial, want := range map[int64]Reason{7: Revoked, 8: ""} {
		if got := reason(t, c.Check(t.Context(), p.leaf(p.first, serial), nil)); got != want {
			t.Errorf("%d: %q, want %q", serial, got, want)
		}
	}
	if r.count() != 0 {
		t.Errorf("%d requests", r.count())
	}
}

// TestRate lets 90 new callers come at once, with 60 requests a minute allowed.
func TestRate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		r := &responder{p: p, delay: time.Second}
		c := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}, Rate: 60})
		var chains [90][]*x509.Certificate
		for i := range chains {
			chains[i] = p.leaf(p.first, int64(i+1))
		}
		round := func() (in int) {
			var mu sync.Mutex
			var all sync.WaitGroup
			for _, chain := range chains {
				for range 3 { // a caller makes several calls at once
					all.Go(func() {
						if c.Check(t.Context(), chain, nil) == nil {
							mu.Lock()
							defer mu.Unlock()
							in++
						}
					})
				}
			}
			all.Wait()
			return in
		}
		if in := round(); in != 60*3 || r.count() != 60 {
			t.Errorf("at once %d calls are let in by %d requests, want 180 by 60", in, r.count())
		}
		bubble.Pass(30 * time.Second)
		if in := round(); in != 60*3 || r.count() != 60 {
			t.Errorf("after 30 s %d calls are let in by %d requests, want 180 by 60", in, r.count())
		}
		bubble.Pass(45 * time.Second)
		if in := round(); in != 90*3 || r.count() != 90 {
			t.Errorf("in the next minute %d calls are let in by %d requests, want 270 by 90", in, r.count())
		}
	})
}

// TestAnswersAge follows the answers about a certificate over hours.
func TestAnswersAge(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		r := &responder{p: p}
		c := startAsking(t, r, Config{Grace: time.Hour, Sources: []Source{{Kind: OCSP, Location: responderURL}}})
		chain, other := p.leaf(p.first, 7), p.leaf(p.first, 8)
		step := func(what string, wait time.Duration, chain []*x509.Certificate, want Reason, count int) {
			t.Helper()
			bubble.Pass(wait)
			before := r.count()
			got := reason(t, c.Check(t.Context(), chain, nil))
			bubble.Pass(time.Second) // the questions in the background
			if got != want || r.count()-before != count {
				t.Errorf("%s: %q after %d requests, want %q after %d", what, got, r.count()-before, want, count)
			}
		}
		step("first", 0, chain, "", 1)
		step("kept", 4*time.Minute, chain, "", 0)
		step("again in the background", time.Minute, chain, "", 1)
		r.set(func() { r.fails = http.StatusServiceUnavailable })
		step("the responder is away", 5*time.Minute, chain, "", 1)
		step("asked again after 10 s alone", 5*time.Second, chain, "", 0)
		step("the answer has ended, in its grace", time.Hour, chain, "", 1)
		step("a new caller", 0, other, NoAnswer, 1)
		step("too long away", time.Hour, chain, Stale, 1)
		r.set(func() { r.fails, r.delay = 0, 5*time.Second })
		step("too slow", time.Minute, chain, Stale, 1)
		r.set(func() { r.fails, r.delay, r.header = 429, 0, http.Header{"Retry-After": {"120"}} })
		step("too many requests", time.Minute, chain, Stale, 1)
		step("not asked", time.Minute, chain, Stale, 0)
		changed := c.Changed()
		r.set(func() { r.fails, r.status = 0, map[int64]int{7: ocsp.Revoked} })
		step("revoked", 2*time.Minute, chain, Revoked, 1)
		select {
		case <-changed:
		default:
			t.Error("it is not said to have changed")
		}
		r.set(func() { r.status = nil })
		step("stays revoked", 10*time.Hour, chain, Revoked, 0)
		step("the other one", 0, other, "", 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := reason(t, c.Check(ctx, p.leaf(p.first, 9), nil)); got == Revoked {
			t.Errorf("a caller that has gone: %q", got)
		}
	})
}

// TestHandshakesAskNothing shows the certificate of a caller again and again, when its answer is due and after its end.
func TestHandshakesAskNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		r := &responder{p: p}
		c := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}})
		chain := p.leaf(p.first, 7)
		if err := c.Check(t.Context(), chain, nil); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			bubble.Pass(4 * time.Minute)
			if err := c.Known(chain); err != nil {
				t.Fatal(err)
			}
		}
		if r.count() != 1 {
			t.Errorf("%d requests, want that of the call alone", r.count())
		}
	})
}

// TestKeptIsAskedAgain looks at a caller with its key proven before, and without a call now.
func TestKeptIsAskedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		r := &responder{p: p}
		c := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}})
		chain := p.leaf(p.first, 7)
		if got := reason(t, c.Kept(chain)); got != NoAnswer || r.count() != 0 {
			t.Errorf("nothing is known: %q after %d requests", got, r.count())
		}
		if err := c.Check(t.Context(), chain, nil); err != nil {
			t.Fatal(err)
		}
		r.set(func() { r.status = map[int64]int{7: ocsp.Revoked} })
		bubble.Pass(6 * time.Minute)
		if got := reason(t, c.Kept(chain)); got != "" {
			t.Errorf("when it is due: %q", got)
		}
		bubble.Pass(time.Second)
		if got := reason(t, c.Kept(chain)); got != Revoked || r.count() != 2 {
			t.Errorf("afterwards: %q after %d requests, want that it is revoked, after 2", got, r.count())
		}
	})
}

func TestQueryConfig(t *testing.T) {
	roots := x509.NewCertPool()
	for _, test := range []struct {
		query Source
		roots *x509.CertPool
		want  string // empty if it is right
	}{
		{Source{Kind: OCSP}, nil, ""},
		{Source{Kind: ACPS, Location: "https://ca.example:9003"}, roots, ""},
		{Source{Kind: ACPS, Location: "http://localhost:9003"}, nil, ""},
		{Source{Kind: ACPS, Location: "https://ca.example:9003"}, nil, "root"},
		{Source{Kind: ACPS, Location: "http://ca.example:9003"}, roots, "https"},
		{Source{Kind: ACPS}, nil, "http or https"},
		{Source{Kind: OCSP, Location: "ldap://ca"}, nil, "http or https"},
		{Source{Kind: "other"}, nil, "no kind"},
	} {
		_, err := New(Config{Sources: []Source{test.query}, Roots: test.roots})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.query, err, test.want)
		}
	}
}
