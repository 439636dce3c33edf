// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/x509"
)

// Revocation knows which certificates of callers count no more, although they were verified and have not expired. Its
// methods may be called by any number of goroutines at once.
type Revocation interface {
	// Check returns why a certificate with these verified chains counts no more: a *task.Error of kind
	// AuthenticationRequired. It may wait for an answer of others, within the limits of its configuration.
	Check(ctx context.Context, chains [][]*x509.Certificate) error
}

// Recheck ends the open streams of all gateways whose callers' certificates count no more, with that as their last
// frame. What is checked before each call changes while a stream is open, so this is called when it has changed, and
// from time to time.
func (p *Process) Recheck(ctx context.Context, r Revocation) {
	for _, s := range p.open.all() {
		if len(s.chains) == 0 {
			continue
		}
		if err := r.Check(ctx, s.chains); err != nil && ctx.Err() == nil {
			s.Cut(err)
		}
	}
}
