// SPDX-License-Identifier: Apache-2.0

package devpki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
)

// profile describes the certificates of one role.
type profile struct {
	want     identity.AIC                 // the AIC it must have; empty for any
	newAIC   func() (identity.AIC, error) // used if want is empty and no earlier certificate has an AIC
	hosts    []string                     // it must be valid for
	template func(aic identity.AIC, now time.Time) *x509.Certificate
}

// aicFor returns the AIC of a new certificate. A replacement for an old certificate keeps its AIC.
func (p *profile) aicFor(old *pair) (identity.AIC, error) {
	if p.want != "" {
		return p.want, nil
	}
	if old != nil {
		if aic, err := identity.FromCertificate(old.cert); err == nil {
			return aic, nil
		}
	}
	return p.newAIC()
}

// lacks returns the difference of a certificate from the profile; empty for none.
func (p *profile) lacks(cert *x509.Certificate) string {
	for _, h := range p.hosts {
		if ip := net.ParseIP(h); ip != nil && !slices.ContainsFunc(cert.IPAddresses, ip.Equal) ||
			ip == nil && !slices.Contains(cert.DNSNames, strings.ToLower(h)) {
			return "it lacked the host " + h
		}
	}
	switch aic, err := identity.FromCertificate(cert); {
	case err != nil:
		return "it had no AIC"
	case p.want != "" && aic != p.want:
		return "it was issued for " + string(aic)
	}
	return ""
}

// serverProfile is the profile of ACPs v02.00 for a server: one key usage, and the names of its hosts.
func serverProfile(hosts []string) profile {
	hosts = slices.Concat([]string{"localhost", "127.0.0.1", "::1"}, hosts)
	return profile{
		newAIC: newAICV2,
		hosts:  hosts,
		template: func(aic identity.AIC, now time.Time) *x509.Certificate {
			t := leafTemplate(string(aic), "acps", aic, now, x509.ExtKeyUsageServerAuth)
			for _, h := range hosts {
				ip, name := net.ParseIP(h), strings.ToLower(h)
				switch {
				case ip == nil && !slices.Contains(t.DNSNames, name):
					t.DNSNames = append(t.DNSNames, name)
				case ip != nil && !slices.ContainsFunc(t.IPAddresses, ip.Equal):
					t.IPAddresses = append(t.IPAddresses, ip)
				}
			}
			return t
		},
	}
}

// leaderProfile is the profile of ACPs v02.00 for a client: one key usage, and the AIC as its name.
func leaderProfile(want identity.AIC) profile {
	return profile{
		want:   want,
		newAIC: newAICV2,
		template: func(aic identity.AIC, now time.Time) *x509.Certificate {
			return leafTemplate(string(aic), "acps", aic, now, x509.ExtKeyUsageClientAuth)
		},
	}
}

// leaderV1Profile is the profile of ACPs v01.00: a domain follows the AIC, and one certificate has both key usages.
func leaderV1Profile(want identity.AIC) profile {
	return profile{
		want:   want,
		newAIC: func() (identity.AIC, error) { return identity.MakeV1(identity.FieldsV1{}) },
		template: func(aic identity.AIC, now time.Time) *x509.Certificate {
			name := string(aic) + ".acps.pub"
			t := leafTemplate(name, "agent", aic, now, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth)
			t.DNSNames = []string{name}
			return t
		},
	}
}

func newAICV2() (identity.AIC, error) { return identity.MakeV2(identity.FieldsV2{}, Salt) }

func rootTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               subject("AIP gateway development root"),
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(rootValidity),
		IsCA:                  true,
		MaxPathLenZero:        true, // it must not sign other CAs
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

func leafTemplate(
	commonName, scheme string, aic identity.AIC, now time.Time, usage ...x509.ExtKeyUsage,
) *x509.Certificate {
	return &x509.Certificate{
		Subject:               subject(commonName),
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(leafValidity),
		URIs:                  []*url.URL{{Scheme: scheme, Host: string(aic)}},
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           usage,
	}
}

func subject(commonName string) pkix.Name {
	return pkix.Name{CommonName: commonName, Organization: []string{"AIP gateway development"}, Country: []string{"CN"}}
}
