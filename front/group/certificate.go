// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/tls"
	"crypto/x509"
	"strings"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// certificateLogin returns the login by the client certificate (EXTERNAL). RabbitMQ takes the certificate's common name
// for the user's name, and refuses messages with another user-id. So they have the AIC as user-id only where the common
// name is the AIC, as in certificates of ACPs v02.00 and later.
func (p *Partner) certificateLogin() (broker.Login, error) {
	leaf, err := clientCertificate(p.TLS)
	switch {
	case err != nil:
		return broker.Login{}, task.Errorf(task.ConnectionFailed, "the client certificate of this Partner cannot be read").
			WithCause(err)
	case leaf == nil:
		return broker.Login{}, task.Errorf(task.AccessTokenInvalid, "accessToken is missing, and this Partner has no "+
			"client certificate for brokers").WithField("params.server.accessToken")
	case !strings.EqualFold(leaf.Subject.CommonName, p.AIC):
		return broker.Certificate(""), nil
	}
	return broker.Certificate(leaf.Subject.CommonName), nil
}

// clientCertificate returns the client certificate of a TLS configuration; nil if it has none.
func clientCertificate(c *tls.Config) (*x509.Certificate, error) {
	var pair *tls.Certificate
	switch {
	case c == nil:
	case c.GetClientCertificate != nil:
		var err error
		if pair, err = c.GetClientCertificate(new(tls.CertificateRequestInfo)); err != nil {
			return nil, err
		}
	case len(c.Certificates) > 0:
		pair = &c.Certificates[0]
	}
	switch {
	case pair == nil || len(pair.Certificate) == 0:
		return nil, nil
	case pair.Leaf != nil:
		return pair.Leaf, nil
	}
	return x509.ParseCertificate(pair.Certificate[0])
}
