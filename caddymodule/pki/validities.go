// SPDX-License-Identifier: Apache-2.0

package pki

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
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// Use says what a certificate is for.
type Use string

// The uses of certificates.
const (
	UseLeaders  Use = "leaders"   // certificates of callers are checked against it
	UseAgent    Use = "agent"     // Partners show it to their agent
	UseAgentCA  Use = "agent_ca"  // certificates of agents are checked against it
	UseGroup    Use = "group"     // Partners show it to brokers
	UseGroupCA  Use = "group_ca"  // certificates of brokers are checked against it
	UseAUN      Use = "aun"       // it is that of an AID of the gateway, or of an agent
	UseAUNRoots Use = "aun_roots" // certificates of AUN are checked against it

	useSite   Use = "site"    // sites show it to callers
	useServer Use = "server"  // that is obtained, which sites show
	useClient Use = "client"  // that is obtained, which Partners show to agents and brokers
	useAUNCRL Use = "aun_crl" // a list of revoked certificates, which its issuer replaces before it ends
)

// certificate is what metrics and the log say of a file of certificates: of the one that ends first. Of a site's
// certificate no file is known.
type certificate struct {
	use           Use
	file, subject string
}

// validity is the time in which a certificate is valid.
type validity struct{ from, until time.Time }

// Validities are those of the certificates of a configuration, by use, file and subject.
type Validities map[certificate]validity

// add adds the certificates of a chain, or of a pool. Of several with one name, the one that ends last counts: it has
// replaced the others.
func (c Validities) add(use Use, file string, all ...*x509.Certificate) {
	first := slices.MinFunc(all, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	key := certificate{use, file, pemtext.SubjectOf(first)}
	if first.NotAfter.After(c[key].until) {
		c[key] = validity{first.NotBefore, first.NotAfter}
	}
}

// Read adds the certificates of PEM files. A file that cannot be read is left out: what uses it reports the error.
func (c Validities) Read(use Use, files ...string) {
	for _, file := range files {
		if all, err := certfile.Read(file); err == nil {
			c.add(use, file, all...)
		}
	}
}

// ReadCRLs adds the lists of revoked certificates of files that name their end. Of several of one issuer, the one that
// ends last counts.
func (c Validities) ReadCRLs(files ...string) {
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

// AddObtained adds the certificates that are obtained for Partners.
func (c Validities) AddObtained(from *Certificates) {
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

// AddHosts adds the certificates that Caddy has for some hosts.
func (c Validities) AddHosts(names []string) {
	for _, name := range names {
		for _, found := range caddytls.AllMatchingCertificates(name) {
			if found.Leaf != nil {
				c.add(useSite, "", found.Leaf)
			}
		}
	}
}

// AddSelected adds the certificates that the connection policies of a server select, whatever the host.
func (c Validities) AddSelected(server *caddyhttp.Server) {
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

// WarnOfCertificates warns of the certificates that end soon, or have ended.
func (h *Host) WarnOfCertificates(log *slog.Logger, now time.Time) {
	for _, all := range []Validities{h.Loaded, h.Current()} {
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
func (c Validities) sorted() []certificate {
	all := make([]certificate, 0, len(c))
	for one := range c {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b certificate) int {
		return cmp.Or(cmp.Compare(a.use, b.use), strings.Compare(a.file, b.file),
			strings.Compare(a.subject, b.subject))
	})
	return all
}
