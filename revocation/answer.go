// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"time"
)

// answer is what a source has said about one certificate. It is not changed.
type answer struct {
	outcome     outcome // unknown, good, notKnown or revoked
	source      string
	from, until time.Time
	got         time.Time
}

// asked is a certificate that was asked about. It is guarded by Checker.answering.
type asked struct {
	answer *answer       // nil for none
	after  time.Time     // before then it is not asked again
	flight chan struct{} // closed when the requests that run have ended; nil if none run
}

const (
	maxAsked   = 1 << 16          // certificates that are remembered
	askAgain   = 10 * time.Second // after nothing was answered
	evictTries = 64
)

// byAnswers says what was answered about a certificate, and whether it may be asked about now.
func (c *Checker) byAnswers(cert *x509.Certificate, now time.Time) (v verdict, ask bool) {
	if len(c.queriers) == 0 {
		return v, false
	}
	key := sha256.Sum256(cert.Raw)
	c.answering.Lock()
	a, is := c.asked[key]
	var said *answer
	ask = true
	if is {
		said, ask = a.answer, !now.Before(a.after)
	}
	c.answering.Unlock()
	if said != nil {
		v = verdict{said.outcome, said.source}
		if said.outcome == good {
			s := span{until: said.until, given: said.got, good: said.got}
			if s.good.After(said.until) {
				s.good = said.until
			}
			v.outcome = c.judge(s, now)
		}
	}
	if v.outcome < degraded {
		for _, q := range c.queriers {
			q.mu.Lock()
			last := q.good
			q.mu.Unlock()
			recent := c.config.MaxAge == 0 || now.Sub(last) <= c.config.MaxAge
			if !last.IsZero() && recent && now.Before(last.Add(c.config.Degrade)) {
				v = verdict{degraded, q.name()}
			}
		}
	}
	return v, ask
}

// ask begins to ask the sources about a certificate, unless that runs already. It returns a channel that is closed when
// it has ended; nil if it cannot be asked about.
func (c *Checker) ask(cert, issuer *x509.Certificate) <-chan struct{} {
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
		c.run(a, cert, issuer)
	}()
	return a.flight
}

// makeRoom forgets a certificate if too many are remembered, but none that is revoked. c.answering is held.
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

// run asks the sources in their order, until one knows.
func (c *Checker) run(a *asked, cert, issuer *x509.Certificate) {
	var said *answer
	wait := askAgain
	for _, q := range c.queriers {
		got, err := q.ask(c.ctx, cert, issuer)
		var rate *rateError
		switch {
		case errors.As(err, &rate):
			wait = min(wait, rate.wait)
		case err != nil:
			c.logQuery(q, err)
		case got.outcome != unknown:
			said = got
		}
		if said != nil {
			break
		}
	}
	now := time.Now()
	c.answering.Lock()
	a.after = now.Add(wait)
	changed := false
	if said != nil {
		// An attacker may repeat an older answer, which does not replace the one that is there.
		if a.answer == nil || !said.from.Before(a.answer.from) {
			changed = a.answer == nil || a.answer.outcome != said.outcome
			a.answer = said
			if said.outcome != notKnown {
				a.after = now.Add(c.config.Refresh)
			}
		}
	}
	close(a.flight)
	a.flight = nil
	c.answering.Unlock()
	if changed {
		c.mu.Lock()
		c.change()
		c.mu.Unlock()
	}
}

// logQuery logs that a request has failed, once a minute.
func (c *Checker) logQuery(q *querier, err error) {
	if errors.Is(err, errNoResponder) || c.ctx.Err() != nil {
		return
	}
	now := time.Now()
	c.answering.Lock()
	logged := c.queryLogged[q]
	if now.Sub(logged) >= logEvery {
		c.queryLogged[q] = now
	}
	c.answering.Unlock()
	if now.Sub(logged) >= logEvery {
		c.log.Warn("a source of revocation has not answered", "source", q.name(), "error", err)
	}
}

// answered asks about a certificate, and waits for the answer.
func (c *Checker) answered(ctx context.Context, cert, issuer *x509.Certificate) verdict {
	if flight := c.ask(cert, issuer); flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
		}
	}
	v, _ := c.byAnswers(cert, time.Now())
	return v
}
