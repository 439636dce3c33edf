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

const (
	maxAnswer  = 64 << 10        // bytes
	answerTime = 3 * time.Second // of one request
)

// querier asks one source.
type querier struct {
	Source
	place         int // among the sources
	client        *http.Client
	refuseUnknown bool

	logged, loggedRate time.Time // last time it was logged as not answering, or as not asked; by mayLog

	mu      sync.Mutex  // guards the fields below
	times   []time.Time // of the requests of the last minute, and of those waiting for their turn
	next    int         // the oldest one of times
	paused  time.Time   // until when the source wants no requests
	usedUp  time.Time   // when it was last not asked, since its rate was used up
	unasked uint64      // number of times
	good    time.Time   // the last good answer
	err     error       // of the last request; nil if it was answered well
}

// pausedError is the error of a source wanting no requests now.
type pausedError struct{ wait time.Duration }

func (e *pausedError) Error() string {
	return fmt.Sprintf("it wants no request for %v", e.wait.Round(time.Second))
}

// rateError is the error of a source that must not be asked now.
type rateError struct {
	rate int
	wait time.Duration
}

func (e *rateError) Error() string {
	return fmt.Sprintf("its rate of %d a minute is used up: raise rate, or have the authority publish a list",
		e.rate)
}

// enter counts a request. It waits for its turn if the turn comes within the time for an answer; else it returns a
// *rateError.
func (q *querier) enter(ctx context.Context) error {
	turn, wait, err := q.reserve(time.Now())
	if err != nil || wait == 0 {
		return err
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.times[turn].Before(now) {
		q.times[turn] = now
	}
	return q.isPaused(now)
}

// reserve reserves a place among the requests of a minute, free after wait.
func (q *querier) reserve(now time.Time) (turn int, wait time.Duration, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.isPaused(now); err != nil {
		return 0, 0, err
	}
	turn = q.next
	if oldest := q.times[turn]; !oldest.IsZero() {
		wait = max(0, oldest.Add(time.Minute).Sub(now))
	}
	if wait > answerTime {
		q.usedUp = now
		q.unasked++
		return 0, 0, &rateError{len(q.times), wait}
	}
	q.times[turn] = now.Add(wait)
	q.next = (turn + 1) % len(q.times)
	return turn, wait, nil
}

// isPaused returns a *pausedError while the source wants no requests. q.mu is held.
func (q *querier) isPaused(now time.Time) error {
	if wait := q.paused.Sub(now); wait > 0 {
		return &pausedError{wait}
	}
	return nil
}

// trouble returns the reason there is no newer answer of the source: a used-up rate is reported for a minute. q.mu is
// held.
func (q *querier) trouble(now time.Time) error {
	if !q.usedUp.IsZero() && now.Sub(q.usedUp) < time.Minute {
		return &rateError{rate: len(q.times)}
	}
	return q.err
}

// isOverdue reports whether the source was healthy, and its last good answer is older than a limit; 0 for none.
func (q *querier) isOverdue(maxAge time.Duration, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maxAge > 0 && !q.good.IsZero() && now.Sub(q.good) > maxAge
}

// errNoResponder is the error of a certificate without a responder.
var errNoResponder = errors.New("the certificate names no responder")

// ask asks the source about a certificate. An answer without an outcome is about an unknown certificate.
func (q *querier) ask(ctx context.Context, cert, issuer *x509.Certificate) (*answer, error) {
	request, err := q.request(cert, issuer)
	if err != nil {
		return nil, err
	}
	if err := q.enter(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	a, err := q.do(request.WithContext(ctx), cert, issuer)
	if err == nil {
		a.source, a.place = q.name(), q.place
		if a.outcome == unknown && q.refuseUnknown {
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
