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
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"
)

const maxAnswer = 64 << 10 // bytes

// querier asks one source.
type querier struct {
	Source
	place  int // among the sources
	client *http.Client

	mu     sync.Mutex // guards what follows
	times  []time.Time
	next   int       // the oldest one of times
	paused time.Time // until when the source wants no requests
	good   time.Time // the last good answer
	err    error     // of the last request; nil if it was answered well
}

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

// isOverdue reports whether the source was healthy, and its last good answer is older than a limit; 0 for none.
func (q *querier) isOverdue(maxAge time.Duration, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maxAge > 0 && !q.good.IsZero() && now.Sub(q.good) > maxAge
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
		a.source, a.place = q.name(), q.place
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
		return http.NewRequest(http.MethodGet, q.Location+acpsPath+acpsSerial(cert.SerialNumber), nil)
	}
	responder := q.Location
	if responder == "" && !q.Staples {
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
		if wait := retryAfter(response); wait > 0 {
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
