// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"crypto/x509"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/standing"
	"github.com/aip-gateway/aip-gateway/task"
)

// trust judges the certificates of callers after their handshakes, and so for as long as their connections are open.
// It implements gateway.Revocation.
type trust struct{ app *App }

// isJudging reports whether certificates can count no more before they expire.
func (t *trust) isJudging() bool { return roots.inUse() }

// counting returns a chain of a certificate that counts, of which one is enough; else why the first does not.
func (t *trust) counting(ctx context.Context, chains [][]*x509.Certificate) (counts []*x509.Certificate, err error) {
	for i, chain := range chains {
		bad := roots.check(chain)
		if bad == nil {
			return chain, nil
		}
		if i == 0 {
			err = bad
		}
	}
	return nil, task.Errorf(task.AuthenticationRequired, "The client certificate is not accepted any more, "+
		"because its issuer is not trusted any more.").WithCause(err)
}

// Check implements gateway.Revocation.
func (t *trust) Check(ctx context.Context, chains [][]*x509.Certificate) error {
	_, err := t.counting(ctx, chains)
	return err
}

// Called implements gateway.Revocation.
func (t *trust) Called(ctx context.Context, leader string, chains [][]*x509.Certificate, lasts bool) error {
	if !t.isJudging() {
		return nil
	}
	if err := t.app.ready(ctx); err != nil {
		return err
	}
	chain, err := t.counting(ctx, chains)
	if err != nil {
		return err
	}
	if err := t.app.opened.leaders.Called(ctx, leader, roots.proof(chain), lasts); err != nil {
		return partner.StoreError(err, "the certificate of the Leader cannot be stored")
	}
	return nil
}

// generation rises when what is known of certificates changes.
func (t *trust) generation() uint64 { return roots.changes.Load() }

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
		by     uint64   // generation
		lost   []string // Leaders
	)
	for {
		if a.trust.isJudging() {
			roots.read(log)
			process.Recheck(ctx, &a.trust)
			if now := a.trust.generation(); now != by || time.Since(judged) >= judgeEvery {
				lost, judged, by = a.judgeLeaders(ctx), time.Now(), now
			}
			for _, leader := range lost {
				if a.opened.leaders.Lost(leader) { // still
					a.opened.groups.LeaveAll(leader)
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// judgeLeaders finds the Leaders whose certificates count no more: their webhooks stop, and their groups are to be
// left.
func (a *App) judgeLeaders(ctx context.Context) (lost []string) {
	return a.opened.leaders.Judge(ctx, func(p standing.Proof) bool { return roots.checkKept(&p) == nil })
}
