// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

// Kind is how a source is asked about one certificate.
type Kind string

// The kinds.
const (
	// OCSP asks a responder (RFC 6960). Its answers are signed by the issuer, or by a responder that the issuer has
	// certified for that.
	OCSP Kind = "ocsp"
	// ACPS asks a certificate authority of ACPs v2.1 for the status as JSON. That is not signed.
	ACPS Kind = "acps"
)

// Query is a source that is asked about one certificate.
type Query struct {
	Kind Kind
	// URL is that of an OCSP responder, default: the one that the certificate names; or that of a certificate authority
	// of ACPs, which must be https with Roots, or on this host.
	URL string
	// Rate is how many requests are made in any minute; default 60.
	Rate int
	// Timeout is for one request; default 3s.
	Timeout time.Duration
	// Roots are trusted for https; default: the system's.
	Roots *x509.CertPool
	// RefuseUnknown makes the answer that a certificate is unknown refuse it. Default false: it is no answer.
	RefuseUnknown bool
}

const (
	defaultRate    = 60
	defaultTimeout = 3 * time.Second
	maxAnswer      = 64 << 10 // bytes
)

// querier asks one source.
type querier struct {
	Query
	client *http.Client

	mu     sync.Mutex // guards what follows
	times  []time.Time
	next   int       // the oldest one of times
	paused time.Time // until when the source wants no requests
	good   time.Time // the last good answer
	err    error     // of the last request; nil if it was answered well
}

func (c *Checker) newQuerier(q Query) (*querier, error) {
	if q.Rate == 0 {
		q.Rate = defaultRate
	}
	if q.Timeout == 0 {
		q.Timeout = defaultTimeout
	}
	u, err := url.Parse(q.URL)
	switch {
	case q.Kind != OCSP && q.Kind != ACPS:
		return nil, fmt.Errorf("%q is no kind of a query", q.Kind)
	case q.Rate < 0, q.Rate > 100_000, q.Timeout < 0:
		return nil, fmt.Errorf("the rate of %s must be 1 to 100000 a minute, and its timeout must not be negative", q.Kind)
	case q.URL == "" && q.Kind == OCSP:
	case err != nil:
		return nil, fmt.Errorf("the URL of %s cannot be read", q.Kind)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("the URL of %s must be http or https, with a host, and without a user, a query or a #", q.Kind)
	case q.Kind == ACPS && (u.Scheme != "https" || q.Roots == nil) && !loopback(u.Hostname()):
		return nil, fmt.Errorf("the answers of %s are not signed: the URL must be https, and the root of its certificate "+
			"must be given; on this host neither is needed", u.Redacted())
	}
	q.URL = strings.TrimSuffix(q.URL, "/")
	return &querier{Query: q, client: c.newClient(q.Roots), times: make([]time.Time, q.Rate)}, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// name returns the name of the source, as in the configuration.
func (q *querier) name() string { return strings.TrimSpace(string(q.Kind) + " " + q.URL) }

// rateError says that a source must not be asked now.
type rateError struct{ wait time.Duration }

func (e *rateError) Error() string {
	return fmt.Sprintf("no request is allowed for %v", e.wait.Round(time.Second))
}

// enter counts a request; it returns a *rateError if none is allowed now.
func (q *querier) enter(now time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := q.paused.Sub(now)
	if oldest := q.times[q.next]; !oldest.IsZero() {
		wait = max(wait, oldest.Add(time.Minute).Sub(now))
	}
	if wait > 0 {
		return &rateError{wait}
	}
	q.times[q.next] = now
	q.next = (q.next + 1) % len(q.times)
	return nil
}

// errNoResponder says that a certificate names no responder.
var errNoResponder = errors.New("the certificate names no responder")

// ask asks the source about a certificate. An answer that has no outcome says that the certificate is unknown.
func (q *querier) ask(ctx context.Context, cert, issuer *x509.Certificate) (*answer, error) {
	request, err := q.request(cert, issuer)
	if err != nil {
		return nil, err
	}
	if err := q.enter(time.Now()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, q.Timeout)
	defer cancel()
	a, err := q.do(request.WithContext(ctx), cert, issuer)
	if err == nil {
		a.source = q.name()
		if a.outcome == unknown && q.RefuseUnknown {
			a.outcome = notKnown
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err = err; err == nil && (a.outcome == unknown || a.outcome == notKnown) {
		q.err = errors.New("the certificate is not known there")
	}
	if q.err == nil {
		q.good = time.Now()
	}
	return a, err
}

func (q *querier) request(cert, issuer *x509.Certificate) (*http.Request, error) {
	if q.Kind == ACPS {
		return http.NewRequest(http.MethodGet, q.URL+acpsPath+acpsSerial(cert.SerialNumber), nil)
	}
	responder := q.URL
	if responder == "" {
		for _, s := range cert.OCSPServer {
			if strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") {
				responder = s
				break
			}
		}
	}
	if responder == "" {
		return nil, errNoResponder
	}
	body, err := ocsp.CreateRequest(cert, issuer, nil)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, responder, bytes.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/ocsp-request")
	}
	return request, err
}

func (q *querier) do(request *http.Request, cert, issuer *x509.Certificate) (*answer, error) {
	response, err := q.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		if wait := retryAfter(response.Header); wait > 0 {
			q.mu.Lock()
			q.paused = time.Now().Add(wait)
			q.mu.Unlock()
		}
		return nil, fmt.Errorf("it is answered with %s", response.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	case q.Kind == ACPS:
		return readACPS(raw, cert.SerialNumber, time.Now())
	}
	return readOCSP(raw, cert, issuer, time.Now())
}
