// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
)

// TLS holds the certificates of the agent and of the gateway as its client. The roots are read when the
// configuration is loaded, the certificate and its key for each connection.
//
// # Which server is meant
//
// The root of ACPs signs any host name, and so only the AIC proves a server. With aic, the certificate must have one of
// these AICs, and the host name does not count; verify both asks for the name as well. Each connection is checked, a
// resumed one, too. Another server gets no request.
type TLS struct {
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

	pki.ServerIdentity

	// Refuses a revoked certificate, or one without an answer, by the sources of revocation, at each connection. Default:
	// false.
	Revocation bool `json:"revocation,omitempty"`
}

// Config returns the TLS configuration of connections to the agent; nil for Go's defaults. Judge may be nil without
// revocation.
func (t *TLS) Config(repl *caddy.Replacer, own pki.Presenter, judge pki.Judge) (*tls.Config, error) {
	if len(t.CA) == 0 && t.Cert == "" && t.Key == "" && !t.Obtained && t.ServerName == "" && !t.Set() &&
		!t.Revocation {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	var err error
	if c.RootCAs, err = certfile.ReadPool(repl, t.CA); err != nil {
		return nil, err
	}
	if err := t.Require(c, judge); err != nil {
		return nil, err
	}
	if t.Obtained {
		return c, own.Present(c, t.Cert, t.Key)
	}
	return c, certfile.Present(c, repl, t.Cert, t.Key)
}
