// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/identity"
)

// tlsApp is what is read of the app tls.
type tlsApp struct {
	Certificates struct {
		Files []caddytls.CertKeyFilePair `json:"load_files"`
	} `json:"certificates"`
	Automation struct {
		Policies []struct {
			Subjects []string `json:"subjects"`
			Managers []struct {
				Via string `json:"via"`
			} `json:"get_certificate"`
		} `json:"policies"`
	} `json:"automation"`
}

// shows reports whether the site of a Partner shows a certificate with an AIC, as far as the configuration says it.
func (t *tlsApp) shows(p *mounted) bool {
	for _, host := range p.names() {
		policies := PoliciesOf(p.Policies, host)
		for _, policy := range policies {
			if policy.CertSelection != nil && slices.ContainsFunc(t.Certificates.Files, func(f caddytls.CertKeyFilePair) bool {
				return slices.ContainsFunc(policy.CertSelection.AnyTag, func(tag string) bool {
					return slices.Contains(f.Tags, tag)
				}) && hasAIC(f.Certificate)
			}) {
				return true
			}
		}
		for _, policy := range t.Automation.Policies {
			if len(policy.Subjects) > 0 && host != "" && !slices.Contains(policy.Subjects, host) {
				continue
			}
			for _, manager := range policy.Managers {
				if manager.Via == "aip" && len(policies) > 0 {
					return true
				}
			}
		}
	}
	return false
}

// names returns the names of the site of a Partner; the empty one for any.
func (p *mounted) names() []string {
	if len(p.hosts) == 0 {
		return []string{""}
	}
	return p.hosts
}

// hasAIC reports whether a file has a certificate with an AIC.
func hasAIC(file string) bool {
	chain, err := certfile.Read(file)
	if err != nil {
		return false // examinePair says so
	}
	_, err = identity.FromCertificate(chain[0])
	return err == nil
}

// AddressAdvice says what to do where the name of a site with client_auth is an IP address.
func AddressAdvice(address string) string {
	return fmt.Sprintf("give the site a host name, since callers send no name of the server for an IP address; or write "+
		"default_sni %s and servers { strict_sni_host insecure_off } as global options, if all sites of this port have the "+
		"same client_auth", address)
}

// examineAddress says whether Leaders reach the site of a Partner whose name is an IP address. They send no name of the
// server then.
func (p *mounted) examineAddress() (findings []Finding) {
	asks := func(p *caddytls.ConnectionPolicy) bool { return p.ClientAuthentication != nil }
	if !slices.ContainsFunc(p.Policies, asks) {
		return nil
	}
	for _, host := range p.hosts {
		if net.ParseIP(host) == nil {
			continue
		}
		f := Finding{CheckClientAuth, Broken, p.settings.name(), ""}
		unnamed := PoliciesOf(p.Policies, "")
		switch named := PoliciesOf(p.Policies, host); {
		case p.strict:
			f.Text = fmt.Sprintf("the name of the site is the IP address %s, so that Caddy answers every request with 421; %s",
				host, AddressAdvice(host))
		case slices.ContainsFunc(named, asks) && !slices.ContainsFunc(unnamed, asks):
			f.Text = fmt.Sprintf("the name of the site is the IP address %s, for which callers send no name of the server, so "+
				"that they are asked for no certificate; %s", host, AddressAdvice(host))
		default:
			continue
		}
		findings = append(findings, f)
	}
	return findings
}
