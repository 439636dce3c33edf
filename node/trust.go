// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/kept"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// Trust judges the certificates of callers after their handshakes, and so for as long as their connections are open.
// It implements gateway.Revocation.
type Trust struct {
	of    *Configuration
	below []checkerBelow
	other *revocation.Checker // of all other roots; nil for none
}

// checkerBelow knows about the certificates below some roots.
type checkerBelow struct {
	checker *revocation.Checker
	roots   []*x509.Certificate
}

// Ask has a checker decide about the certificates below some roots, or, without any, about all others. It is called
// before Start.
func (t *Trust) Ask(c *revocation.Checker, roots ...*x509.Certificate) {
	if len(roots) == 0 {
		t.other = c
		return
	}
	t.below = append(t.below, checkerBelow{c, roots})
}

// CheckerOf returns the checker of a verified chain; nil for none.
func (t *Trust) CheckerOf(chain []*x509.Certificate) *revocation.Checker {
	root := chain[len(chain)-1]
	for _, b := range t.below {
		if slices.ContainsFunc(b.roots, root.Equal) {
			return b.checker
		}
	}
	return t.other
}

// checkers returns all checkers, the one of all other roots first.
func (t *Trust) checkers() (all []*revocation.Checker) {
	if t.other != nil {
		all = append(all, t.other)
	}
	for _, b := range t.below {
		if !slices.Contains(all, b.checker) {
			all = append(all, b.checker)
		}
	}
	return all
}

// Sources returns the state of all sources. A source of two checkers is there once.
func (t *Trust) Sources() (all []revocation.Health) {
	for _, c := range t.checkers() {
		for _, s := range c.Health() {
			if !slices.ContainsFunc(all, func(o revocation.Health) bool {
				return o.Kind == s.Kind && o.Location == s.Location
			}) {
				all = append(all, s)
			}
		}
	}
	return all
}

// isJudging reports whether certificates can count no more before they expire.
func (t *Trust) isJudging() bool {
	return t.other != nil || len(t.below) > 0 || t.of.process.Roots.inUse()
}

// counting returns a chain of a certificate that counts, of which one is enough; else why the first does not.
// Without ask, that is decided by what is known.
func (t *Trust) counting(
	ctx context.Context, chains [][]*x509.Certificate, staple []byte, ask bool,
) (counts []*x509.Certificate, err error) {
	for i, chain := range chains {
		bad, checker := t.of.process.Roots.check(chain), t.CheckerOf(chain)
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

// JudgeServer returns why the certificate of a server counts no more; nil if it does. Sources are asked, although the
// server has not proven its key yet: the gateway has chosen whom it connects to, and each source has its rate.
func (t *Trust) JudgeServer(chains [][]*x509.Certificate, staple []byte) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), judgeTimeout)
	defer cancel()
	for _, chain := range chains {
		checker := t.CheckerOf(chain)
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
func (t *Trust) Check(ctx context.Context, chains [][]*x509.Certificate, staple []byte) error {
	_, err := t.counting(ctx, chains, staple, true)
	if err != nil {
		t.of.process.RefusedCalls.count(err)
	}
	return err
}

// checkKnown is Check by what is known.
func (t *Trust) checkKnown(ctx context.Context, chains [][]*x509.Certificate, _ []byte) error {
	_, err := t.counting(ctx, chains, nil, false)
	if err != nil {
		t.of.process.RefusedCalls.count(err)
	}
	return err
}

// Called implements gateway.Revocation.
func (t *Trust) Called(ctx context.Context, leader string, chains [][]*x509.Certificate, lasts bool) error {
	if err := t.of.Ready(ctx); err != nil {
		return err
	}
	leaders := t.of.Node().Leaders
	if !t.isJudging() && !leaders.Lost(leader) { // another configuration may have judged
		return nil
	}
	chain, err := t.counting(ctx, chains, nil, false) // Check has asked
	if err != nil {
		return err
	}
	if err := leaders.Called(ctx, leader, t.of.process.Roots.proof(chain), lasts); err != nil {
		return partner.StoreError(err, "the certificate of the Leader cannot be stored")
	}
	return nil
}

// generation rises when what is known of certificates changes.
func (t *Trust) generation() uint64 {
	n := t.of.process.Roots.changes.Load()
	for _, c := range t.checkers() {
		n += c.Generation()
	}
	return n
}

// changed is closed at the next change of the sources of all other roots. Those of some roots are looked at from time
// to time.
func (t *Trust) changed() <-chan struct{} {
	if t.other != nil {
		return t.other.Changed()
	}
	return nil
}

// keeps reports whether a certificate that was kept counts. One of which nothing is known now counts as it did.
func (t *Trust) keeps(p kept.Proof, did bool) bool {
	if t.of.process.Roots.checkKept(&p) != nil {
		return false
	}
	c := t.CheckerOf(p.Chain)
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
func (t *Trust) recheck(ctx context.Context) {
	log, process, n := t.of.process.log("aip"), t.of.process, t.of.Node()
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	var (
		judged time.Time
		by     uint64 // generation
	)
	for {
		changed := t.changed()
		if t.isJudging() {
			process.Roots.read(log)
			process.Recheck(ctx, t.checkKnown)
			asking, end := context.WithTimeout(ctx, recheckEvery)
			process.Recheck(asking, t.Check)
			end()
			leaders := n.Leaders
			if now := t.generation() + leaders.Gained(); now != by || time.Since(judged) >= judgeEvery {
				leaders.Judge(ctx, t.keeps) // webhooks of those without standing stop
				judged, by = time.Now(), now
			}
			asking, end = context.WithTimeout(ctx, recheckEvery)
			leaders.Learn(asking)
			end()
			for _, leader := range leaders.AllLost() {
				n.Groups.LeaveAll(leader)
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
