// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"crypto/x509"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// trust judges the certificates of callers after their handshakes, and so for as long as their connections are open.
// It implements gateway.Revocation.
type trust struct{}

// Check implements gateway.Revocation. A certificate counts if one of its chains does.
func (t *trust) Check(ctx context.Context, chains [][]*x509.Certificate) (err error) {
	for i, chain := range chains {
		bad := roots.check(chain)
		if bad == nil {
			return nil
		}
		if i == 0 {
			err = bad
		}
	}
	return task.Errorf(task.AuthenticationRequired, "The client certificate is not accepted any more, "+
		"because its issuer is not trusted any more.").WithCause(err)
}

// recheckEvery is how often it is looked for what has changed of the trust in certificates whose connections are open:
// what is known here takes effect within a minute.
const recheckEvery = 15 * time.Second

// recheck ends the streams of callers whose certificates count no more, until ctx ends.
func (a *App) recheck(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if roots.inUse() {
			roots.read(log)
			process.Recheck(ctx, &a.trust)
		}
	}
}
