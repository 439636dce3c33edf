// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/identity"
)

// ServerIdentity is which server is meant, where the gateway is the client.
type ServerIdentity struct {
	// AICs of the server; its certificate must have one. Default: none.
	AIC []string `json:"aic,omitempty"`

	// The proof in its certificate: aic, name (the host), or both. Default: aic where one is given, otherwise name.
	Verify string `json:"verify,omitempty"`
}

// Options adds its options to those of a block tls.
func (s *ServerIdentity) Options(p *conf.Parser, of conf.Options) conf.Options {
	of["aic"], of["verify"] = p.Words(&s.AIC), p.Word(&s.Verify)
	return of
}

// Set reports whether the settings say anything.
func (s *ServerIdentity) Set() bool { return len(s.AIC) > 0 || s.Verify != "" }

// Judge refuses certificates of servers that are those of the server that is meant.
type Judge = func(chains [][]*x509.Certificate, staple []byte) error

// Require makes connections with a configuration fail where the server is another one, or judge, if there is one,
// refuses its certificate.
func (s *ServerIdentity) Require(c *tls.Config, judge Judge) error {
	server, err := identity.ParseServer(s.Verify, s.AIC...)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	server.Judge = judge
	server.Require(c)
	return nil
}
