// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"github.com/caddyserver/certmagic"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
)

// reaching returns those of the policies of a server that connections with requests for hosts may have. No hosts stand
// for any.
func (n *noted) reaching(hosts []string) (some caddytls.ConnectionPolicies) {
	if len(hosts) == 0 || n.loose {
		return n.policies
	}
	for _, host := range hosts {
		some = append(some, PoliciesOf(n.policies, host)...)
	}
	return some
}

// PoliciesOf returns those of the policies of a server, which are not provisioned yet, that connections to a host may
// have: the first that is for all of them is the last. The host may have wildcards; connections that name none have the
// empty one.
func PoliciesOf(policies caddytls.ConnectionPolicies, host string) (some caddytls.ConnectionPolicies) {
	for _, p := range policies {
		var names caddytls.MatchServerName
		raw, named := p.MatchersRaw["sni"]
		if named && json.Unmarshal(raw, &names) == nil &&
			!slices.ContainsFunc(names, func(name string) bool { return meet(name, host) }) {
			continue
		}
		some = append(some, p)
		if len(p.MatchersRaw) == 0 || len(p.MatchersRaw) == 1 && slices.ContainsFunc(names, func(name string) bool {
			return certmagic.MatchWildcard(host, name)
		}) {
			break
		}
	}
	return some
}

// meet reports whether some host may have both of two names, with wildcards.
func meet(one, two string) bool {
	if strings.Contains(one+two, "{") {
		return true // what a placeholder stands for is not known
	}
	return slices.EqualFunc(strings.Split(one, "."), strings.Split(two, "."), func(label, other string) bool {
		return label == "*" || other == "*" || strings.EqualFold(label, other)
	})
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

// VerifiesClients reports whether a policy, which may not be provisioned yet, has certificates of clients verified.
func VerifiesClients(p *caddytls.ConnectionPolicy) bool {
	return p != nil && (RequiresClients(p) ||
		p.ClientAuthentication != nil && p.ClientAuthentication.Mode == "verify_if_given")
}

// sharedWith says why certificates of others than operators open a console. It is empty if none does.
func sharedWith(console, leaders []trust) string {
	const mend = "; give its site another trust_pool file, or add basic_auth or forward_auth to the site" + orPublic
	for _, ours := range console {
		switch {
		case ours.leafs: // which the operator has chosen one by one
			continue
		case len(ours.roots) == 0:
			return "it is not known which certificates open the console, and it shows all tasks" + mend
		}
		for _, theirs := range leaders {
			switch above := theirs.unfinished(); {
			case ours.shares(theirs):
				return "certificates that open an aip_gateway open the console, and it shows all tasks" + mend
			case len(theirs.roots) == 0:
				return "it is not proven that no certificate that opens an aip_gateway opens the console, which shows " +
					"all tasks" + mend
			case above != nil:
				return fmt.Sprintf("the CA %q, whose certificates open an aip_gateway, is below another CA, which may be "+
					"below one of the console, and the console shows all tasks; name the certificates of operators in "+
					"its site one by one, by trusted_leaf_cert_file, or add basic_auth or forward_auth to the site%s",
					above.Subject, orPublic)
			}
		}
	}
	return ""
}

// trust is what the certificates of clients are checked against.
type trust struct {
	text  string // as it stands in the configuration
	roots []*x509.Certificate
	leafs bool // only the certificates that are named themselves count
}

// trusted returns what the certificates of clients are checked against.
func trusted(policies caddytls.ConnectionPolicies) (all []trust) {
	for _, p := range policies {
		if p.ClientAuthentication != nil {
			all = append(all, trustOf(p.ClientAuthentication))
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
	if len(c.Pool) == 0 || slices.Contains([]string{"file", "aip_file", "inline"}, pool.Provider) {
		t.roots, _ = rootsIn(slices.Concat(pool.Files, c.Files), slices.Concat(pool.Inline, c.Inline))
	}
	return t
}

// rootsIn returns the certificates in files, and those that are encoded as in a pool inline.
func rootsIn(files, encoded []string) (all []*x509.Certificate, err error) {
	for _, file := range files {
		certs, err := certfile.Read(file)
		if err != nil {
			return nil, err
		}
		all = append(all, certs...)
	}
	for _, text := range encoded {
		der, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	return all, nil
}

// shares reports whether a certificate that counts for others counts here, too: a CA of theirs is one of these, or is
// certified by one.
func (t trust) shares(others trust) bool {
	return t.text == others.text || slices.ContainsFunc(others.roots, func(theirs *x509.Certificate) bool {
		return slices.ContainsFunc(t.roots, func(ours *x509.Certificate) bool {
			return bytes.Equal(ours.RawSubjectPublicKeyInfo, theirs.RawSubjectPublicKeyInfo) ||
				theirs.CheckSignatureFrom(ours) == nil
		})
	})
}

// unfinished returns a root that is certified by a CA that is none of the roots, so that it is not known what it is
// below; nil for none.
func (t trust) unfinished() *x509.Certificate {
	for _, root := range t.roots {
		if !slices.ContainsFunc(t.roots, func(ca *x509.Certificate) bool {
			return bytes.Equal(root.RawIssuer, ca.RawSubject) &&
				ca.CheckSignature(root.SignatureAlgorithm, root.RawTBSCertificate, root.Signature) == nil
		}) {
			return root
		}
	}
	return nil
}
