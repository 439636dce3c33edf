// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/x509"

	"github.com/aip-gateway/aip-gateway/translate"
)

// Revocation knows which certificates of callers count no more, although they were verified and have not expired. Its
// methods may be called by any number of goroutines at once.
type Revocation interface {
	// Check returns why a certificate with these verified chains counts no more: a *task.Error of kind
	// AuthenticationRequired. It may wait for an answer of others, within the limits of its configuration. staple is the
	// OCSP response that the caller has sent with the certificate; nil for none.
	Check(ctx context.Context, chains [][]*x509.Certificate, staple []byte) error
	// Called says that a Leader makes a call that is admitted, by a certificate that counts. lasts says that the call
	// asks for what goes on without a connection. An error refuses the call, and has a kind.
	Called(ctx context.Context, leader string, chains [][]*x509.Certificate, lasts bool) error
}

// checkRevoked refuses a peer whose certificate counts no more.
func (x *exchange) checkRevoked() error {
	if r := x.g.config.Revocation; r != nil && len(x.peer.Chains) > 0 {
		return r.Check(x.ctx, x.peer.Chains, x.peer.Staple)
	}
	return nil
}

// called says that the call is admitted.
func (x *exchange) called() error {
	if r := x.g.config.Revocation; r != nil && len(x.peer.Chains) > 0 {
		lasts := x.call.Webhook != nil || x.call.Op == translate.JoinGroup
		return r.Called(x.ctx, x.call.Leader, x.peer.Chains, lasts)
	}
	return nil
}

// Recheck ends the open streams of all gateways whose callers' certificates count no more, with that as their last
// frame. What is checked before each call changes while a stream is open, so this is called when it has changed, and
// from time to time. check is Revocation.Check, or does not wait for an answer of others. Once ctx has ended, it ends
// no stream.
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
