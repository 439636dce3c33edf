// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

func init() { caddy.RegisterModule(new(RevocationVerifier)) }

// RevocationVerifier is a verifier of client_auth: handshakes with revoked certificates are refused, by the lists of
// revocation. It sends no query.
type RevocationVerifier struct{ host *Host }

// CaddyModule returns the Caddy module information.
func (*RevocationVerifier) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.client_auth.verifier.aip_revocation",
		New: func() caddy.Module { return new(RevocationVerifier) }}
}

// Provision finds the sources.
func (v *RevocationVerifier) Provision(ctx caddy.Context) error {
	host, err := hostOf(ctx)
	if err != nil {
		return err
	}
	if v.host = host; !host.asks() {
		return errors.New("aip_revocation needs sources: write the global option aip { revocation { crl <file> } }")
	}
	return nil
}

// UnmarshalCaddyfile sets up the verifier from a Caddyfile. Syntax:
//
//	verifier aip_revocation
func (*RevocationVerifier) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadDirective(d)
}

// VerifyClientCertificate implements caddytls.ClientCertificateVerifier. Certificates that TLS has not verified are no
// proof, and are not judged.
func (v *RevocationVerifier) VerifyClientCertificate(_ [][]byte, chains [][]*x509.Certificate) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), StartLimit)
	defer cancel()
	if len(chains) == 0 {
		return nil
	}
	if bad := v.host.Configuration.Ready(ctx); bad != nil {
		return bad
	}
	for _, chain := range chains {
		bad := v.host.Configuration.Trust.CheckerOf(chain).Known(chain)
		if bad == nil {
			return nil
		}
		err = cmp.Or(err, bad)
	}
	v.host.Process.node.RefusedHandshakes.Note(chains[0], err)
	return err
}

// Interface guards.
var (
	_ caddy.Provisioner                  = (*RevocationVerifier)(nil)
	_ caddyfile.Unmarshaler              = (*RevocationVerifier)(nil)
	_ caddytls.ClientCertificateVerifier = (*RevocationVerifier)(nil)
)
