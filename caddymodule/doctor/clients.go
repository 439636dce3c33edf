// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// requiresClients reports whether TLS requires certificates of the clients of all hosts. No hosts stand for any.
func (s *server) requiresClients(hosts []string) bool {
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	if s.StrictHost != nil && !*s.StrictHost { // the host of the connection may be another than that of a request
		return len(s.Policies) > 0 && !slices.ContainsFunc(s.Policies, func(p *caddytls.ConnectionPolicy) bool {
			return !RequiresClients(p)
		})
	}
	return !slices.ContainsFunc(hosts, func(host string) bool {
		policies, all := PoliciesOf(s.Policies, host)
		return !all || slices.ContainsFunc(policies, func(p *caddytls.ConnectionPolicy) bool {
			return !RequiresClients(p)
		})
	})
}

// PoliciesOf returns those of the policies of a server, which are not provisioned yet, that connections to a host may
// have: the first that is for all of them is the last. all says whether there is one.
func PoliciesOf(policies caddytls.ConnectionPolicies, host string) (some caddytls.ConnectionPolicies, all bool) {
	for _, p := range policies {
		var names caddytls.MatchServerName
		raw, named := p.MatchersRaw["sni"]
		if named && json.Unmarshal(raw, &names) == nil && !slices.ContainsFunc(names, func(name string) bool {
			label, domain, _ := strings.Cut(host, ".")
			return strings.EqualFold(name, host) || label != "" && strings.EqualFold(name, "*."+domain)
		}) {
			continue
		}
		some = append(some, p)
		if len(p.MatchersRaw) == 0 || named && len(p.MatchersRaw) == 1 {
			return some, true
		}
	}
	return some, false
}

// RequiresClients reports whether a policy, which may not be provisioned yet, accepts verified clients only.
func RequiresClients(p *caddytls.ConnectionPolicy) bool {
	if p.ClientAuthentication == nil {
		return false
	}
	switch c := p.ClientAuthentication; c.Mode {
	case "require_and_verify":
		return true
	case "": // the mode is require_and_verify if there is something to verify with
		return c.Active()
	}
	return false
}

// sharesClients says why certificates of Leaders open the console of some hosts. It is empty if none does.
func (all servers) sharesClients(s *server, hosts []string) string {
	const mend = "give its site another trust_pool file, or add basic_auth or forward_auth to the site" + orPublic
	of := s.trusted(hosts)
	for _, other := range all {
		for _, r := range slices.Concat(other.Routes, other.Errors.Routes) {
			theirs := other.leaders(&r)
			if theirs == nil {
				continue
			}
			for _, leaders := range append(theirs, other.trusted(r.hosts())...) {
				for _, operators := range of {
					switch {
					case operators.shares(leaders):
						return "certificates that open an aip_gateway open the console, and it shows all tasks; " + mend
					case !operators.known() || !leaders.known():
						return "it is not proven that no certificate that opens an aip_gateway opens the console, which shows " +
							"all tasks; " + mend
					}
				}
			}
		}
	}
	return ""
}

// leaders returns what each aip_gateway in a route, at any depth, checks the certificates against that a proxy hands
// on. It is nil where there is none.
func (s *server) leaders(r *route) (all []trust) {
	for _, raw := range r.Handle {
		var h struct {
			Handler  string          `json:"handler"`
			Name     string          `json:"name"`
			Routes   []route         `json:"routes"`
			Identity json.RawMessage `json:"identity"` // a text has no roots
		}
		if json.Unmarshal(raw, &h) != nil {
			continue // Caddy refuses it
		}
		in := s
		if h.Handler == "invoke" {
			h.Routes, in = s.invoked(h.Name)
		}
		for i := range h.Routes {
			all = append(all, in.leaders(&h.Routes[i])...)
		}
		if h.Handler != "aip_gateway" {
			continue
		}
		var by struct {
			Header *struct {
				Roots []string `json:"trust_pool"`
			} `json:"client_cert_header"`
		}
		one := trust{leafs: true} // none
		if json.Unmarshal(h.Identity, &by) == nil && by.Header != nil {
			one = (&clientAuth{Files: by.Header.Roots}).trust()
		}
		all = append(all, one)
	}
	return all
}

// trust is what the certificates of clients are checked against.
type trust struct {
	text  string // as it stands in the configuration
	roots []*x509.Certificate
	leafs bool // only the certificates that are named themselves count
}

// trusted returns what the certificates of the clients of hosts are checked against. No hosts stand for any.
func (s *server) trusted(hosts []string) (all []trust) {
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	for _, host := range hosts {
		policies, _ := PoliciesOf(s.Policies, host)
		for _, p := range policies {
			if p.ClientAuthentication != nil {
				all = append(all, trustOf(p.ClientAuthentication))
			}
		}
	}
	return all
}

// clientAuth is a client_auth as it stands in a configuration. It is read from JSON, since older members, which still
// count, are deprecated in Go.
type clientAuth struct {
	Pool      json.RawMessage   `json:"ca"`
	Inline    []string          `json:"trusted_ca_certs"`
	Files     []string          `json:"trusted_ca_certs_pem_files"`
	Leafs     []string          `json:"trusted_leaf_certs"`
	Verifiers []json.RawMessage `json:"verifiers"`
}

// trustOf returns what a client_auth, which is not provisioned yet, trusts. It has no roots where they are not known.
func trustOf(of *caddytls.ClientAuthentication) trust {
	var c clientAuth
	text, _ := json.Marshal(of)
	_ = json.Unmarshal(text, &c)
	return c.trust()
}

func (c *clientAuth) trust() (t trust) {
	var pool struct {
		Provider string   `json:"provider"`
		Files    []string `json:"pem_files"`
		Inline   []string `json:"trusted_ca_certs"`
	}
	_ = json.Unmarshal(c.Pool, &pool) // what cannot be decoded is not known
	text, _ := json.Marshal([]any{c.Pool, c.Inline, c.Files})
	t.text, t.leafs = string(text), len(c.Leafs) > 0 || slices.ContainsFunc(c.Verifiers,
		func(raw json.RawMessage) bool {
			var v struct {
				Verifier string `json:"verifier"`
			}
			return json.Unmarshal(raw, &v) == nil && v.Verifier == "leaf"
		})
	if len(c.Pool) > 0 && !slices.Contains([]string{"file", "aip_file", "inline"}, pool.Provider) {
		return t
	}
	for _, file := range append(pool.Files, c.Files...) {
		certs, err := ReadCertificates(file)
		if err != nil {
			t.roots = nil
			return t
		}
		t.roots = append(t.roots, certs...)
	}
	for _, encoded := range append(pool.Inline, c.Inline...) {
		der, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.roots = nil
			return t
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.roots = nil
			return t
		}
		t.roots = append(t.roots, cert)
	}
	return t
}

// known reports whether it is known which certificates count.
func (t trust) known() bool { return t.leafs || len(t.roots) > 0 }

// shares reports whether a certificate that counts for others counts here, too: a CA of theirs is one of these, or is
// certified by one.
func (t trust) shares(others trust) bool {
	if t.leafs { // which the operator has chosen one by one
		return false
	}
	return t.text == others.text || slices.ContainsFunc(others.roots, func(theirs *x509.Certificate) bool {
		return slices.ContainsFunc(t.roots, func(ours *x509.Certificate) bool {
			return bytes.Equal(ours.RawSubjectPublicKeyInfo, theirs.RawSubjectPublicKeyInfo) ||
				theirs.CheckSignatureFrom(ours) == nil
		})
	})
}
