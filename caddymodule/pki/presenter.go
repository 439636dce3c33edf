// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"errors"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// Presenter returns the client certificate that is obtained for a Partner, for one connection. Nil: none is.
type Presenter func(*tls.CertificateRequestInfo) (*tls.Certificate, error)

// Present has connections show the certificate, in place of one in files. A new one is shown from the next connection
// on.
func (p Presenter) Present(c *tls.Config, cert, key string) error {
	switch {
	case cert+key != "":
		return errors.New("tls has a certificate that is obtained, and one in files; leave one of them out")
	case p == nil:
		return errors.New("tls client_cert aip needs the aic of the Partner, and the global option " +
			"aip { certificates <directory> }")
	}
	c.GetClientCertificate = p
	return nil
}

// ClientCertOption returns what reads the option: the files of a certificate and its key, or aip for the obtained one.
func ClientCertOption(p *conf.Parser, cert, key *string, obtained *bool) func() {
	return func() {
		switch args := p.RemainingArgs(); {
		case len(args) == 1 && args[0] == "aip":
			*obtained = true
		case len(args) == 2:
			*cert, *key = args[0], args[1]
		default:
			p.Fail("client_cert needs a certificate and a key, both PEM files, or aip for the one that is obtained")
		}
	}
}
