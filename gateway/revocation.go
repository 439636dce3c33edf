// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/x509"

	"github.com/aip-gateway/aip-gateway/translate"
)

// Revocation knows the callers' certificates that count no more, although they were verified and have not expired. Its
// methods may be called by any number of goroutines at once.
type Revocation interface {
	// Check returns the reason why a certificate with these verified chains counts no more: a *task.Error of kind
	// AuthenticationRequired. It may wait for an answer of others, within the limits of its configuration. staple is the
	// caller's OCSP response beside the certificate; nil for none.
	Check(ctx context.Context, chains [][]*x509.Certificate, staple []byte) error
	// Called is for an admitted call of a Leader, by a valid certificate. lasts is true if the call asks for something
	// going on without a connection. An error refuses the call, and has a kind.
	Called(ctx context.Context, leader string, chains [][]*x509.Certificate, lasts bool) error
}

// checkRevoked refuses a peer with a certificate that counts no more.
func (x *exchange) checkRevoked() error {
	if r := x.g.config.Revocation; r != nil && len(x.peer.Chains) > 0 {
		return r.Check(x.ctx, x.peer.Chains, x.peer.Staple)
	}
	return nil
}

// called reports the admitted call to Revocation.
func (x *exchange) called() error {
	if r := x.g.config.Revocation; r != nil && len(x.peer.Chains) > 0 {
		lasts := x.call.Webhook != nil || x.call.Op == translate.JoinGroup
		return r.Called(x.ctx, x.call.Leader, x.peer.Chains, lasts)
	}
	return nil
}

// Recheck ends the open streams of all gateways with callers whose certificates count no more, with the reason as their
// last frame. The results of the checks before each call change while a stream is open, so this is called at such a
// change, and from time to time. check is Revocation.Check, or does not wait for an answer of others. Once ctx has
// ended, it ends no stream.
func (p *Process) Recheck(
	ctx context.Context, check func(ctx context.Context, chains [][]*x509.Certificate, staple []byte) error,
) {
	for _, s := range p.open.all() {
		if len(s.peer.Chains) == 0 {
			continue
		}
		err := check(ctx, s.peer.Chains, s.peer.Staple)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Cut(err)
		}
	}
}
