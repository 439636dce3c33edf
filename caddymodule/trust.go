// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/kept"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// trust judges the certificates of callers after their handshakes, and so for as long as their connections are open.
// It implements gateway.Revocation.
type trust struct{ app *App }

// isJudging reports whether certificates can count no more before they expire.
func (t *trust) isJudging() bool {
	return t.app.Revocation != nil || len(t.app.revocations) > 0 || roots.inUse()
}

// counting returns a chain of a certificate that counts, of which one is enough; else why the first does not.
// Without ask, that is decided by what is known.
func (t *trust) counting(
	ctx context.Context, chains [][]*x509.Certificate, staple []byte, ask bool,
) (counts []*x509.Certificate, err error) {
	for i, chain := range chains {
		bad, checker := roots.check(chain), t.checkerOf(chain)
		switch {
		case bad != nil || checker == nil:
		case ask:
			bad = checker.Check(ctx, chain, staple)
		default:
			bad = checker.Known(chain)
		}
		if bad == nil {
			return chain, nil
		}
		if i == 0 {
			err = bad
		}
	}
	return nil, refused(err)
}

// refused returns the error of a caller whose certificate counts no more. The log has the cause.
func refused(cause error) error {
	detail := "The client certificate is not accepted any more, because its issuer is not trusted any more."
	if r, ok := errors.AsType[*revocation.Refusal](cause); ok {
		detail = "It is not known now whether the client certificate is revoked. Try again later."
		if r.Reason == revocation.Revoked {
			detail = "The client certificate is revoked."
		}
	}
	return task.Errorf(task.AuthenticationRequired, "%s", detail).WithCause(cause)
}

// judgeTimeout is how long a handshake with a server waits for what sources say about its certificate.
const judgeTimeout = 5 * time.Second

// judgeServer returns why the certificate of a server counts no more; nil if it does. Sources are asked, although the
// server has not proven its key yet: the gateway has chosen whom it connects to, and each source has its rate.
func (t *trust) judgeServer(chains [][]*x509.Certificate, staple []byte) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), judgeTimeout)
	defer cancel()
	for _, chain := range chains {
		checker := t.checkerOf(chain)
		if checker == nil {
			return nil
		}
		bad := checker.Check(ctx, chain, staple)
		if bad == nil {
			return nil
		}
		err = cmp.Or(err, bad)
	}
	return err
}

// Check implements gateway.Revocation.
func (t *trust) Check(ctx context.Context, chains [][]*x509.Certificate, staple []byte) error {
	_, err := t.counting(ctx, chains, staple, true)
	if err != nil {
		refusedCalls.count(err)
	}
	return err
}

// checkKnown is Check by what is known.
func (t *trust) checkKnown(ctx context.Context, chains [][]*x509.Certificate, _ []byte) error {
	_, err := t.counting(ctx, chains, nil, false)
	if err != nil {
		refusedCalls.count(err)
	}
	return err
}

// Called implements gateway.Revocation.
func (t *trust) Called(ctx context.Context, leader string, chains [][]*x509.Certificate, lasts bool) error {
	if err := t.app.configuration.Ready(ctx); err != nil {
		return err
	}
	leaders := t.app.configuration.Node().Leaders
	if !t.isJudging() && !leaders.Lost(leader) { // another configuration may have judged
		return nil
	}
	chain, err := t.counting(ctx, chains, nil, false) // Check has asked
	if err != nil {
		return err
	}
	if err := leaders.Called(ctx, leader, roots.proof(chain), lasts); err != nil {
		return partner.StoreError(err, "the certificate of the Leader cannot be stored")
	}
	return nil
}

// generation rises when what is known of certificates changes.
func (t *trust) generation() uint64 {
	n := roots.changes.Load()
	for _, r := range t.app.allRevocations() {
		n += r.checker.Generation()
	}
	return n
}

// health returns what is known of the sources of revocation.
func (t *trust) health() (all []adminapi.SourceHealth) {
	for _, s := range t.sources() {
		h := adminapi.SourceHealth{Kind: string(s.Kind), Location: s.Location, Issuer: s.Issuer, Number: s.Number,
			Entries: s.Entries, ThisUpdate: s.ThisUpdate, NextUpdate: s.NextUpdate, Good: s.Good}
		if s.Err != nil {
			h.Reason = s.Err.Error()
		}
		all = append(all, h)
	}
	return all
}

// changed is closed when what the sources of the app know changes the next time. Those of roots are looked at from time
// to time.
func (t *trust) changed() <-chan struct{} {
	if r := t.app.Revocation; r != nil {
		return r.checker.Changed()
	}
	return nil
}

// keeps reports whether a certificate that was kept counts. One of which nothing is known now counts as it did.
func (t *trust) keeps(p kept.Proof, did bool) bool {
	if roots.checkKept(&p) != nil {
		return false
	}
	c := t.checkerOf(p.Chain)
	if c == nil {
		return true
	}
	err := c.Kept(p.Chain)
	if r, ok := errors.AsType[*revocation.Refusal](err); ok {
		return did && r.Reason != revocation.Revoked
	}
	return true
}

const (
	// recheckEvery is how often open connections are judged again: what is known here takes effect within a minute.
	recheckEvery = 15 * time.Second
	// judgeEvery is how often the Leaders are judged that have no connection, though nothing has changed: then their
	// certificates expire.
	judgeEvery = 10 * time.Minute
)

// recheck ends what callers have open whose certificates count no more, until ctx ends.
func (a *App) recheck(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	var (
		judged time.Time
		by     uint64 // generation
	)
	for {
		changed := a.trust.changed()
		if a.trust.isJudging() {
			roots.read(log)
			process.Recheck(ctx, a.trust.checkKnown)
			asking, end := context.WithTimeout(ctx, recheckEvery)
			process.Recheck(asking, a.trust.Check)
			end()
			leaders := a.configuration.Node().Leaders
			if now := a.trust.generation() + leaders.Gained(); now != by || time.Since(judged) >= judgeEvery {
				leaders.Judge(ctx, a.trust.keeps) // webhooks of those without standing stop
				judged, by = time.Now(), now
			}
			asking, end = context.WithTimeout(ctx, recheckEvery)
			leaders.Learn(asking)
			end()
			for _, leader := range leaders.AllLost() {
				a.configuration.Node().Groups.LeaveAll(leader)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}
