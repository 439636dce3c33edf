// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/notify"
)

// loadedCertificates returns the certificates of the files that are read once, when the configuration is loaded. a.mu
// is held.
func (a *App) loadedCertificates() pki.Validities {
	c := make(pki.Validities)
	if a.AUN != nil {
		c.Read(pki.UseAUN, a.AUN.Cert)
		c.Read(pki.UseAUN, a.AUN.AgentCerts...)
		c.Read(pki.UseAUNRoots, a.AUN.Roots...)
		c.ReadCRLs(a.AUN.CRL...)
	}
	for _, g := range a.members {
		c.Read(pki.UseLeaders, g.trusted...)
		c.Read(pki.UseAgent, g.Agent.TLS.Cert)
		c.Read(pki.UseAgentCA, g.Agent.TLS.CA...)
		c.Read(pki.UseAUN, g.Agent.Identity)
		c.Read(pki.UseAUNRoots, g.Agent.Roots...)
		if g.Group != nil {
			c.Read(pki.UseGroupCA, g.Group.TLS.CA...)
		}
	}
	return c
}

// currentCertificates returns the certificates that are renewed without a reload.
func (a *App) currentCertificates() pki.Validities {
	c := make(pki.Validities)
	servers := make(map[*caddyhttp.Server]bool)
	c.AddObtained(a.Certificates)
	for _, g := range a.members {
		if g.Group != nil {
			c.Read(pki.UseGroup, g.Group.TLS.Cert)
		}
		if g.server != nil {
			servers[g.server] = true
			c.AddHosts(g.hosts())
		}
	}
	for server := range servers {
		c.AddSelected(server)
	}
	return c
}

// hosts returns the names of the hosts that the Partner's site takes; none if it takes all.
func (g *Gateway) hosts() []string {
	way := doctor.WayTo(g.server, g)
	if way == nil {
		return nil
	}
	return doctor.HostsOf(way.Site)
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
