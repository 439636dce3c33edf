// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/identity"
)

func init() { caddy.RegisterModule(new(CertificateGetter)) }

// CertificateGetter shows the certificate of a Partner from the option certificates, in tls of a site. A new one counts
// from the next handshake on.
type CertificateGetter struct {
	// The Partner. Default: by port and name of the request.
	Partner string `json:"partner,omitempty"`

	host *Host
	ctx  caddy.Context // of the configuration
}

// CaddyModule returns the Caddy module information.
func (*CertificateGetter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.get_certificate.aip", New: func() caddy.Module { return new(CertificateGetter) }}
}

// Provision finds the app.
func (g *CertificateGetter) Provision(ctx caddy.Context) error {
	if g.Partner != "" {
		if _, err := identity.ParseAIC(g.Partner); err != nil {
			return err
		}
	}
	host, err := hostOf(ctx)
	if err != nil {
		return err
	}
	if host.Certificates == nil {
		return errors.New("get_certificate aip needs an authority: write the global option " +
			"aip { certificates <directory> }")
	}
	g.host, g.ctx = host, ctx
	host.mu.Lock()
	defer host.mu.Unlock()
	host.getters = append(host.getters, g)
	return nil
}

// GetCertificate implements certmagic.Manager. Where it has no certificate, it returns an error, so that Caddy obtains
// none from another authority in its place.
func (g *CertificateGetter) GetCertificate(ctx context.Context, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	if err := g.host.Configuration.Ready(ctx); err != nil {
		return nil, err
	}
	if pair := g.choose(hello); pair != nil {
		return pair, nil
	}
	return nil, errors.New("there is no certificate of a Partner for this name yet; see caddy aip certificates list")
}

// choose returns the certificate for a handshake; nil for none.
func (g *CertificateGetter) choose(hello *tls.ClientHelloInfo) *tls.Certificate {
	if g.Partner != "" {
		if k := g.host.Certificates.Of(g.Partner); k != nil {
			return k.Certificate(agentca.ServerAuth)
		}
		return nil
	}
	all, at, name := g.host.Certificates.All(), g.host.At(hello), hello.ServerName
	if len(at) > 0 {
		all = slices.DeleteFunc(all, func(k *agentca.Keeper) bool { return !slices.Contains(at, k.AIC) })
	}
	for _, k := range all {
		if pair := k.Certificate(agentca.ServerAuth); pair != nil && name != "" && pair.Leaf.VerifyHostname(name) == nil {
			return pair
		}
	}
	if len(all) == 1 {
		return all[0].Certificate(agentca.ServerAuth)
	}
	return nil
}

// GetterFor returns what gets the certificates for a host by get_certificate aip; nil for none.
func GetterFor(app *caddytls.TLS, host string) *CertificateGetter {
	if app.Automation == nil {
		return nil
	}
	for _, policy := range app.Automation.Policies {
		if host != "" && !Serves(policy.Subjects(), host) {
			continue
		}
		for _, m := range policy.Managers {
			if g, ok := m.(*CertificateGetter); ok {
				return g
			}
		}
		return nil
	}
	return nil
}

// Serves reports whether a site with hosts takes a name. One without hosts takes all.
func Serves(hosts []string, name string) bool {
	return len(hosts) == 0 || slices.ContainsFunc(hosts, func(host string) bool {
		return certmagic.MatchWildcard(strings.ToLower(name), strings.ToLower(host))
	})
}

// UnmarshalCaddyfile sets up the module from a Caddyfile. Syntax:
//
//	get_certificate aip [<AIC>]
func (g *CertificateGetter) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if d.NextArg() {
		g.Partner = d.Val()
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	if d.NextBlock(d.Nesting()) {
		return d.Errf("get_certificate aip has no block, but there is %q", d.Val())
	}
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner     = (*CertificateGetter)(nil)
	_ caddyfile.Unmarshaler = (*CertificateGetter)(nil)
	_ certmagic.Manager     = (*CertificateGetter)(nil)
)
