// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"time"
)

// answer is a source's answer about one certificate. It is not changed once it is kept.
type answer struct {
	outcome     outcome // unknown, good, notKnown or revoked
	source      string
	place       int
	from, until time.Time
	got         time.Time
	signed      []byte // an OCSP response, until it is kept on disk
}

// span returns the times of a good answer.
func (a *answer) span() span { return span{until: a.until, given: a.got} }

// asked is a certificate that was asked about, or may be. It is guarded by Checker.answering.
type asked struct {
	answer  *answer           // nil for none
	refuses verdict           // of a source without an answer or a stand-in; zero for none
	after   time.Time         // before then it is not asked again
	flight  chan struct{}     // closed when the running requests have ended; nil if none run
	staple  [sha256.Size]byte // of the one read last
}

const (
	maxAsked   = 1 << 16          // certificates remembered
	askAgain   = 10 * time.Second // after nothing was answered
	evictTries = 64
)

// byAnswers returns the verdict of the answers about a certificate, whether the answer is not older than
// Config.Refresh, and whether the certificate may be asked about now.
func (c *Checker) byAnswers(cert, issuer *x509.Certificate, now time.Time) (v verdict, fresh, ask bool) {
	if len(c.queriers) == 0 {
		return v, false, false
	}
	key := sha256.Sum256(cert.Raw)
	c.answering.Lock()
	a := c.asked[key]
	if a == nil {
		c.answering.Unlock()
		recalled := c.recallAnswer(cert, issuer)
		c.answering.Lock()
		if a = c.asked[key]; a == nil && recalled != nil && c.makeRoom() {
			a = recalled
			c.asked[key] = a
		}
	}
	var said *answer
	ask = true
	if a != nil {
		said, v, ask = a.answer, a.refuses, !now.Before(a.after)
	}
	c.answering.Unlock()
	if said != nil {
		is := verdict{said.outcome, said.source, said.place}
		if said.outcome == good {
			is.outcome = c.judge(said.span(), now)
		}
		fresh = now.Sub(said.got) <= c.config.Refresh
		if counts := fresh || is.outcome > good || v.outcome == unknown; counts && is.outcome > v.outcome {
			v = is
		}
	}
	return v, fresh, ask
}

// ask begins to ask the sources before a limit about a certificate, unless such a run is under way. It returns a
// channel that is closed when the run has ended; nil if it cannot be asked about.
func (c *Checker) ask(cert, issuer *x509.Certificate, limit int) <-chan struct{} {
	key := sha256.Sum256(cert.Raw)
	c.answering.Lock()
	defer c.answering.Unlock()
	a := c.asked[key]
	if a != nil && (a.flight != nil || time.Now().Before(a.after)) {
		return a.flight
	}
	if a == nil && !c.makeRoom() || !c.enter() {
		return nil
	}
	if a == nil {
		a = &asked{}
		c.asked[key] = a
	}
	a.flight = make(chan struct{})
	go func() {
		defer c.work.Done()
		c.run(a, cert, issuer, limit)
	}()
	return a.flight
}

// makeRoom forgets a certificate if too many are remembered, but no revoked one. c.answering is held.
func (c *Checker) makeRoom() bool {
	if len(c.asked) < maxAsked {
		return true
	}
	tries := 0
	for key, a := range c.asked {
		if a.flight == nil && (a.answer == nil || a.answer.outcome != revoked) {
			delete(c.asked, key)
			return true
		}
		if tries++; tries == evictTries {
			break
		}
	}
	return false
}

// run asks the sources before a limit in their order, until one knows, or refuses: none stands in for a source overdue,
// or with its rate used up.
func (c *Checker) run(a *asked, cert, issuer *x509.Certificate, limit int) {
	var said *answer
	var refuses verdict
	wait := askAgain
	for _, q := range c.queriers {
		if q.place >= limit || said != nil || refuses.outcome > stale {
			break
		}
		got, err := q.ask(c.ctx, cert, issuer)
		var paused *pausedError
		var usedUp *rateError
		switch {
		case errors.Is(err, errNoResponder):
			continue
		case errors.As(err, &paused):
			wait = min(wait, paused.wait)
		case errors.As(err, &usedUp):
			wait = min(wait, usedUp.wait)
			refuses = verdict{unasked, q.name(), q.place}
			c.logRate(q, usedUp)
		case err != nil:
			c.logQuery(q, err)
		case got.outcome != unknown:
			said = got
		}
		if said == nil && q.isOverdue(c.config.MaxAge, time.Now()) {
			refuses = verdict{overdue, q.name(), q.place}
		}
	}
	now := time.Now()
	c.answering.Lock()
	a.after, a.refuses = now.Add(wait), refuses
	changed, kept := false, false
	if said != nil {
		changed, kept = c.take(a, said)
	}
	signed := []byte(nil)
	if kept {
		signed, said.signed = said.signed, nil
	}
	close(a.flight)
	a.flight = nil
	c.answering.Unlock()
	if len(signed) > 0 {
		c.keepAnswer(cert, signed, now)
	}
	if changed {
		c.mu.Lock()
		c.change()
		c.mu.Unlock()
	}
}

// take makes said the answer about a certificate, unless the current one is newer: an attacker may repeat an older one.
// c.answering is held.
func (c *Checker) take(a *asked, said *answer) (changed, kept bool) {
	if a.answer != nil && said.from.Before(a.answer.from) {
		return false, false
	}
	changed = a.answer == nil || a.answer.outcome != said.outcome
	a.answer, a.refuses = said, verdict{}
	if said.outcome != notKnown {
		a.after = c.due(said)
	}
	return changed, true
}

// due returns the time to ask again after an answer. The time is early enough for this answer to count until the next
// one is there, so a frequent caller never waits for it.
func (c *Checker) due(said *answer) time.Time {
	counts := said.until.Sub(said.got)
	if c.config.MaxAge > 0 {
		counts = min(counts, c.config.MaxAge)
	}
	return said.got.Add(min(c.config.Refresh-c.config.Refresh/10, max(0, counts/2)))
}

// staple takes the OCSP response brought by a caller, as if the first source of OCSP had been asked. A response that
// does not count is no answer.
func (c *Checker) staple(cert, issuer *x509.Certificate, raw []byte) {
	if c.responder == nil || len(raw) > maxAnswer {
		return
	}
	sum := sha256.Sum256(raw)
	now := time.Now()
	_, _, _ = c.byAnswers(cert, issuer, now) // the answer kept on disk
	key := sha256.Sum256(cert.Raw)
	c.answering.Lock()
	a := c.asked[key]
	seen := a != nil && (a.staple == sum || a.answer != nil && a.answer.outcome == revoked)
	c.answering.Unlock()
	if seen {
		return
	}
	said, err := readOCSP(raw, cert, issuer, now)
	c.answering.Lock()
	defer c.answering.Unlock()
	if a = c.asked[key]; a == nil {
		if !c.makeRoom() {
			return
		}
		a = &asked{}
		c.asked[key] = a
	}
	a.staple = sum
	if err != nil || said.outcome == unknown {
		return
	}
	said.got, said.signed = said.from, nil // a caller may bring an old one again and again
	said.source, said.place = c.responder.name(), c.responder.place
	due := a.after
	changed, _ := c.take(a, said)
	if !due.IsZero() && due.Before(a.after) {
		a.after = due // a caller's response does not postpone the question
	}
	if changed && said.outcome == revoked {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.change()
	}
}

// logQuery logs a failed request, once a minute.
func (c *Checker) logQuery(q *querier, err error) {
	if c.mayLog(&q.logged) {
		// What to do: see docs/certificates.md#watch-the-sources.
		c.log.Warn("a source of revocation has not answered", "source", q.name(), "error", err)
	}
}

// logRate logs a source not asked, once a minute.
func (c *Checker) logRate(q *querier, err *rateError) {
	if c.mayLog(&q.loggedRate) {
		// What to do: raise `rate`.
		c.log.Warn("a source of revocation is not asked, since its rate is used up, and calls are refused",
			"source", q.name(), "error", err)
	}
}

// logEvery is the interval for logging the same about a source.
const logEvery = time.Minute

// mayLog reports whether a line last logged at a time may be logged again.
func (c *Checker) mayLog(last *time.Time) bool {
	now := time.Now()
	c.answering.Lock()
	defer c.answering.Unlock()
	if c.ctx.Err() != nil || now.Sub(*last) < logEvery {
		return false
	}
	*last = now
	return true
}
