// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/aip-gateway/aip-gateway/aun"
)

// Anyone may ask for the certificate of a logged-in client. So few questions to other processes are under way at once,
// and nothing is kept of the answers.

// maxLooks is how many clients may be looked for at other processes at once.
const maxLooks = 16

// certificateOf asks a process for the certificates of a client.
type certificateOf struct{ From, AID string }

// CertificateOf returns the certificates of a client's login, at whichever process, its own first; none without a
// login.
func (c *Connections) CertificateOf(ctx context.Context, aid aun.AID) ([]*x509.Certificate, error) {
	if chain := c.certificateHere(string(aid)); len(chain) > 0 {
		return chain, nil
	}
	n := c.nodes.Load()
	if n == nil {
		return nil, nil
	}
	select {
	case n.looks <- struct{}{}:
		defer func() { <-n.looks }()
	default:
		return nil, errors.New("too many ask for clients at other gateways")
	}
	ctx, done := context.WithTimeout(ctx, nodePatience)
	defer done()
	var failed error
	for answer, err := range n.certificates.All(ctx, certificateOf{n.name, string(aid)}) {
		if err != nil {
			failed = fmt.Errorf("a gateway that may have the client has not answered: %w", err)
		}
		if len(answer.Value) > 0 {
			return x509.ParseCertificates(answer.Value)
		}
	}
	return nil, failed
}

// certificateHere returns the certificates of a client logged in at this process.
func (c *Connections) certificateHere(aid string) []*x509.Certificate {
	for _, s := range c.Of(aid) {
		s.mu.Lock()
		chain := s.proof.Chain()
		if !s.ready {
			chain = nil
		}
		s.mu.Unlock()
		if len(chain) > 0 {
			return chain
		}
	}
	return nil
}

// present answers another process, by certificates in DER, one after the other.
func (c *Connections) present(q certificateOf) (der []byte) {
	for _, cert := range c.certificateHere(q.AID) {
		der = append(der, cert.Raw...)
	}
	return der
}
