// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
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

// A connection shows one certificate, and Leaders compare the AIC in it. So the Partners at the port and the name of a
// handshake decide which one that is.

// partnersAt returns the AICs of the Partners that are reached by a handshake, of those whose certificates are
// obtained; none where that is not known.
func (a *App) partnersAt(hello *tls.ClientHelloInfo) (aics []string) {
	if hello.Conn == nil {
		return nil
	}
	_, port, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
	if err != nil { // a socket has no port
		return nil
	}
	for _, g := range a.members {
		if g.server == nil || !a.Certificates.Obtains(g.AIC) || slices.Contains(aics, g.AIC) {
			continue
		}
		if listensAt(g.server, port) && pki.Serves(g.hosts(), hello.ServerName) {
			aics = append(aics, g.AIC)
		}
	}
	return aics
}

// listensAt reports whether a server listens at a port.
func listensAt(server *caddyhttp.Server, port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && slices.ContainsFunc(server.Listen, func(address string) bool {
		at, err := caddy.ParseNetworkAddress(address)
		return err == nil && at.StartPort <= uint(n) && uint(n) <= at.EndPort
	})
}

// checkShown finds sites of several Partners that get_certificate aip is to choose for, although a connection does not
// say which of them it is for.
func (a *App) checkShown() error {
	app, err := a.pki.Sites()
	if app == nil {
		return err
	}
	for _, one := range a.members {
		for _, two := range a.members {
			switch {
			case one.server == nil || one.server != two.server || one.AIC >= two.AIC:
			case !a.Certificates.Obtains(one.AIC) || !a.Certificates.Obtains(two.AIC):
			default:
				host, both := commonHost(one.hosts(), two.hosts())
				if getter := pki.GetterFor(app, host); both && getter != nil && getter.Partner == "" {
					return fmt.Errorf("get_certificate aip: the Partners %s and %s are at one address (%s), and a connection shows "+
						"one certificate: give each a host name or a port of its own, or write get_certificate aip <AIC> for the "+
						"one whose certificate is to be shown", one.AIC, two.AIC, strings.TrimSpace(host+" "+
						strings.Join(one.server.Listen, " ")))
				}
			}
		}
	}
	return nil
}

// commonHost returns a name that two sites take, which is empty for every name, and whether there is one.
func commonHost(one, two []string) (host string, both bool) {
	switch {
	case len(one) == 0 && len(two) == 0:
		return "", true
	case len(one) == 0:
		one, two = two, one
	}
	for _, name := range one {
		if pki.Serves(two, name) {
			return name, true
		}
	}
	return "", false
}
