// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
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

// Leaders of AIP 2 compare the sender of each answer with the AIC in the certificate of the site. So a Partner without
// an AIC of its own answers under that one.

// sender returns the AIC under which the Partner answers; empty for none.
func (g *Gateway) sender() string {
	if shown := g.shown.Load(); g.AIC == "" && shown != nil {
		return *shown
	}
	return g.AIC
}

// dialectOf returns the dialect in which a webhook of a Partner's task is notified.
func dialectOf(w *task.Webhook, partner string) translate.Notifier {
	return gateway.Wire(w, senderOf(partner))
}

// senderOf returns the AIC under which the Partner answers whose tasks are stored under a name: that name, or the one
// of its mounts in the configuration that is in force.
func senderOf(partner string) string {
	if _, err := identity.ParseAIC(partner); err == nil {
		return partner
	}
	if now := newest(); now != nil {
		for _, g := range now.mounts[partner] {
			if aic := g.sender(); aic != "" {
				return aic
			}
		}
	}
	return ""
}

// findSenders finds the AIC that the site of each Partner without one shows, and warns where there is none. a.mu is
// held.
func (a *App) findSenders() {
	for _, g := range a.members {
		if g.AIC != "" || g.server == nil {
			continue
		}
		shown := a.shownBy(g)
		g.shown.Store(&shown)
		if shown == "" && g.needsSender() && !g.warned {
			g.warnWithoutSender()
		}
	}
}

// needsSender reports whether callers of a Partner compare the sender of its answers. One that is to be registered has
// an AIC when it is.
func (g *Gateway) needsSender() bool {
	return g.AIC == "" && !g.registered && g.Identity.Mode != string(identity.Off) && slices.Contains(g.Callers, "aip/2")
}

// warnWithoutSender warns of a Partner without an AIC.
func (g *Gateway) warnWithoutSender() {
	g.warned = true
	// What to do: add the lines in `advice`.
	g.log.Warn("Leaders of AIP 2 refuse the answers: the site shows no certificate with an AIC",
		"listen", strings.Join(g.server.Listen, " "), "advice", doctor.SetAIC)
}

// warnOfServerWithoutAIC warns of a Partner without an AIC on a server of whose sites none shows a certificate with
// one. While handlers are provisioned it is not known yet which site a handler belongs to: findSenders knows that.
func (g *Gateway) warnOfServerWithoutAIC(ctx caddy.Context) {
	if g.server == nil || !g.needsSender() || len(g.app.pki.Getters()) > 0 {
		return
	}
	for _, p := range g.app.servers.Policies(g.server) {
		names := []string{""}
		_ = json.Unmarshal(p.MatchersRaw["sni"], &names) // Caddy refuses what is no list
		selects := caddytls.ConnectionPolicies{{CertSelection: p.CertSelection}}
		if p.CertSelection != nil && selects.Provision(ctx) != nil {
			return // Caddy refuses it, too
		}
		for _, name := range names {
			if aicShown(selects[0], name) != "" {
				return
			}
		}
	}
	g.warnWithoutSender()
}

// shownBy returns the AIC in the certificate that the site of a Partner shows; empty for none.
func (a *App) shownBy(g *Gateway) string {
	written := a.servers.Policies(g.server)
	names := g.hosts()
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		name = strings.Replace(name, "*", "any", 1)
		some := doctor.PoliciesOf(written, name)
		for _, p := range some {
			if i := slices.Index(written, p); i < len(g.server.TLSConnPolicies) {
				if aic := aicShown(g.server.TLSConnPolicies[i], name); aic != "" {
					return aic
				}
			}
		}
		if len(some) > 0 {
			if aic := a.obtainedFor(g, name); aic != "" {
				return aic
			}
		}
	}
	return ""
}

// aicShown returns the AIC in the certificate that is loaded for connections of a policy to a host; empty for none.
func aicShown(p *caddytls.ConnectionPolicy, name string) string {
	if p.CertSelection != nil && p.TLSConfig != nil {
		nowhere, _ := net.Pipe() // Caddy asks for its address
		pair, err := p.TLSConfig.GetCertificate(&tls.ClientHelloInfo{ServerName: name, Conn: nowhere})
		if err == nil && pair != nil && pair.Leaf != nil {
			return aicIn(pair)
		}
		return ""
	}
	for _, found := range caddytls.AllMatchingCertificates(name) {
		if aic := aicIn(&found.Certificate); aic != "" {
			return aic
		}
	}
	return ""
}

func aicIn(pair *tls.Certificate) string {
	if pair.Leaf == nil {
		return ""
	}
	aic, err := identity.FromCertificate(pair.Leaf)
	if err != nil {
		return ""
	}
	return string(aic)
}

// obtainedFor returns the AIC whose certificate get_certificate aip shows at the site of a Partner for a host, also if
// it is not obtained yet; empty for none, and where that depends on what is obtained.
func (a *App) obtainedFor(g *Gateway, name string) string {
	app, _ := a.pki.Sites()
	if app == nil {
		return ""
	}
	getter := pki.GetterFor(app, name)
	if getter == nil {
		return ""
	}
	if getter.Partner != "" {
		aic, _ := identity.ParseAIC(getter.Partner) // Provision has parsed it
		return string(aic)
	}
	var here, all []string
	for _, m := range a.members {
		if !a.Certificates.Obtains(m.AIC) || slices.Contains(all, m.AIC) {
			continue
		}
		all = append(all, m.AIC)
		if m.server == g.server && pki.Serves(m.hosts(), name) {
			here = append(here, m.AIC)
		}
	}
	if len(here) > 0 {
		all = here
	}
	if len(all) != 1 {
		return ""
	}
	return all[0]
}
