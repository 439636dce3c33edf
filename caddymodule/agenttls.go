// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/notify"
)

// AgentTLS holds the certificates of the agent and of the gateway as its client. The roots are read when the
// configuration is loaded, the certificate and its key for each connection.
//
// # Which server is meant
//
// The root of ACPs signs any host name, and so only the AIC proves a server. With aic, the certificate must have one of
// these AICs, and the host name does not count; verify both asks for the name as well. Each connection is checked, a
// resumed one, too. Another server gets no request.
type AgentTLS struct {
	// PEM files with the roots of the agent, read at load. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// PEM files with the gateway's client certificate and its key, as AIP Partners require, read at each connection.
	Cert string `json:"cert,omitempty"`

	// Default: none.
	Key string `json:"key,omitempty"`

	// aip: the one from the option certificates.
	Obtained bool `json:"obtained,omitempty"`

	// The name in the agent's certificate. Default: the host of its URL.
	ServerName string `json:"server_name,omitempty"`

	ServerIdentity

	// Refuses a revoked certificate, or one without an answer, by the sources of revocation, at each connection. Default:
	// false.
	Revocation bool `json:"revocation,omitempty"`

	judge judge // set with Revocation
}

// config returns the TLS configuration of connections to the agent; nil for Go's defaults.
func (t *AgentTLS) config(repl *caddy.Replacer, own pki.Presenter) (*tls.Config, error) {
	if len(t.CA) == 0 && t.Cert == "" && t.Key == "" && !t.Obtained && t.ServerName == "" && !t.set() &&
		!t.Revocation {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	var err error
	if c.RootCAs, err = certfile.ReadPool(repl, t.CA); err != nil {
		return nil, err
	}
	if err := t.require(c, t.judge); err != nil {
		return nil, err
	}
	if t.Obtained {
		return c, own.Present(c, t.Cert, t.Key)
	}
	return c, certfile.Present(c, repl, t.Cert, t.Key)
}

// presenter returns what shows the obtained certificate of the Partner. Before the registry has assigned its AIC, there
// is none to show.
func (g *Gateway) presenter(c *pki.Certificates) pki.Presenter {
	if c == nil || g.AIC == "" && !g.registered {
		return nil
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.ClientCert(g.AIC) }
}

// shownTo returns the certificates that the receivers of certificate_for are shown, by Partner: of those that show them
// to their agent, too.
func shownTo(members []*Gateway, c *pki.Certificates) map[string]notify.ClientCertificate {
	all := make(map[string]notify.ClientCertificate)
	for _, g := range members {
		if show := g.presenter(c); show != nil && g.Agent.TLS.Obtained {
			all[g.name()] = show
		}
	}
	return all
}

// clientCertOption returns what reads the option: the files of a certificate and its key, or aip for the obtained one.
func clientCertOption(p *conf.Parser, cert, key *string, obtained *bool) func() {
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
