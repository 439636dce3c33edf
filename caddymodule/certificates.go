// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// What a certificate is for.
const (
	useSite     = "site"      // sites show it to callers
	useLeaders  = "leaders"   // certificates of callers are checked against it
	useAgent    = "agent"     // Partners show it to their agent
	useAgentCA  = "agent_ca"  // certificates of agents are checked against it
	useGroup    = "group"     // Partners show it to brokers
	useGroupCA  = "group_ca"  // certificates of brokers are checked against it
	useServer   = "server"    // that is obtained, which sites show
	useClient   = "client"    // that is obtained, which Partners show to agents and brokers
	useAUN      = "aun"       // it is that of an AID of the gateway, or of an agent
	useAUNRoots = "aun_roots" // certificates of AUN are checked against it
	useAUNCRL   = "aun_crl"   // a list of revoked certificates, which its issuer replaces before it ends
)

// certificate is what metrics and the log say of a file of certificates: of the one that ends first. Of a site's
// certificate no file is known.
type certificate struct{ use, file, subject string }

// validity is the time in which a certificate is valid.
type validity struct{ from, until time.Time }

// certificates are what a configuration has loaded, by use, file and subject.
type certificates map[certificate]validity

// add adds the certificates of a chain, or of a pool. Of several with one name, the one that ends last counts: it has
// replaced the others.
func (c certificates) add(use, file string, all ...*x509.Certificate) {
	first := slices.MinFunc(all, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	key := certificate{use, file, pemtext.SubjectOf(first)}
	if first.NotAfter.After(c[key].until) {
		c[key] = validity{first.NotBefore, first.NotAfter}
	}
}

// read adds the certificates of PEM files. A file that cannot be read is left out: what uses it reports the error.
func (c certificates) read(use string, files ...string) {
	for _, file := range files {
		if all, err := certfile.Read(file); err == nil {
			c.add(use, file, all...)
		}
	}
}

// readCRLs adds the lists of revoked certificates of files that name their end. Of several of one issuer, the one that
// ends last counts.
func (c certificates) readCRLs(files ...string) {
	for _, file := range files {
		lists, _ := certfile.ReadLists(file)
		for _, list := range lists {
			key := certificate{useAUNCRL, file, list.Issuer.CommonName}
			if list.NextUpdate.After(c[key].until) {
				c[key] = validity{list.ThisUpdate, list.NextUpdate}
			}
		}
	}
}

// loadedCertificates returns the certificates of the files that are read once, when the configuration is loaded. a.mu
// is held.
func (a *App) loadedCertificates() certificates {
	c := make(certificates)
	if a.AUN != nil {
		c.read(useAUN, a.AUN.Cert)
		c.read(useAUN, a.AUN.AgentCerts...)
		c.read(useAUNRoots, a.AUN.Roots...)
		c.readCRLs(a.AUN.CRL...)
	}
	for _, g := range a.members {
		c.read(useLeaders, g.trusted...)
		c.read(useAgent, g.Agent.TLS.Cert)
		c.read(useAgentCA, g.Agent.TLS.CA...)
		c.read(useAUN, g.Agent.Identity)
		c.read(useAUNRoots, g.Agent.Roots...)
		if g.Group != nil {
			c.read(useGroupCA, g.Group.TLS.CA...)
		}
	}
	return c
}

// currentCertificates returns the certificates that are renewed without a reload.
func currentCertificates(members []*Gateway) certificates {
	c := make(certificates)
	servers := make(map[*caddyhttp.Server]bool)
	if len(members) > 0 {
		c.addObtained(members[0].app.Certificates)
	}
	for _, g := range members {
		if g.Group != nil {
			c.read(useGroup, g.Group.TLS.Cert)
		}
		if g.server != nil {
			servers[g.server] = true
			c.addHosts(g.hosts())
		}
	}
	for server := range servers {
		c.addSelected(server)
	}
	return c
}

// addObtained adds the certificates that are obtained for Partners.
func (c certificates) addObtained(from *pki.Certificates) {
	for _, k := range from.All() {
		for _, held := range k.Status().Certificates {
			use := useServer
			if held.Usage == agentca.ClientAuth {
				use = useClient
			}
			c.add(use, "", held.Pair.Leaf)
		}
	}
}

// addHosts adds the certificates that Caddy has for some hosts.
func (c certificates) addHosts(names []string) {
	for _, name := range names {
		for _, found := range caddytls.AllMatchingCertificates(name) {
			if found.Leaf != nil {
				c.add(useSite, "", found.Leaf)
			}
		}
	}
}

// addSelected adds the certificates that the connection policies of a server select, whatever the host.
func (c certificates) addSelected(server *caddyhttp.Server) {
	for _, p := range server.TLSConnPolicies {
		if p.CertSelection == nil || p.TLSConfig == nil {
			continue // it goes by the name, which only callers know
		}
		nowhere, _ := net.Pipe() // Caddy asks for its address
		pair, err := p.TLSConfig.GetCertificate(&tls.ClientHelloInfo{Conn: nowhere})
		if err == nil && pair != nil && pair.Leaf != nil {
			c.add(useSite, "", pair.Leaf)
		}
	}
}

// hosts returns the names of the hosts that the Partner's site takes; none if it takes all.
func (g *Gateway) hosts() []string {
	way := doctor.WayTo(g.server, g)
	if way == nil {
		return nil
	}
	return doctor.HostsOf(way.Site)
}

// trustedFiles returns the files that a server checks the certificates of callers against. Caddy forgets their names
// when it has provisioned the server's policies, after the server's handlers.
func trustedFiles(server *caddyhttp.Server) (files []string) {
	for _, p := range server.TLSConnPolicies {
		files = append(files, doctor.TrustFiles(p)...)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// warnOfCertificates warns of the certificates that end soon, or have ended.
func (a *App) warnOfCertificates(log *slog.Logger, now time.Time) {
	for _, all := range []certificates{a.certificates, currentCertificates(a.members)} {
		for _, c := range all.sorted() {
			if certfile.EndsSoon(all[c].from, all[c].until, now) {
				// What to do: renew it.
				log.Warn("a certificate ends soon, or has ended", "use", c.use, "file", c.file, "subject", c.subject,
					"until", all[c].until.UTC())
			}
		}
	}
}

// sorted returns the certificates in an order that is always the same.
func (c certificates) sorted() []certificate {
	all := make([]certificate, 0, len(c))
	for one := range c {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b certificate) int {
		return cmp.Or(strings.Compare(a.use, b.use), strings.Compare(a.file, b.file),
			strings.Compare(a.subject, b.subject))
	})
	return all
}
