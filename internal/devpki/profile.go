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

// profile says what a leaf looks like.
type profile struct {
	want     identity.AIC                 // whom it is made out to; empty means anyone
	fresh    func() (identity.AIC, error) // makes an AIC for it
	hosts    []string                     // the hosts that it must name
	template func(aic identity.AIC, now time.Time) *x509.Certificate
}

// aicFor returns the AIC to make a certificate out to. Whoever had the old one keeps its name.
func (p *profile) aicFor(old *pair) (identity.AIC, error) {
	if p.want != "" {
		return p.want, nil
	}
	if old != nil {
		if aic, err := identity.FromCertificate(old.cert); err == nil {
			return aic, nil
		}
	}
	return p.fresh()
}

// lacks says what a certificate lacks of what the profile asks for, or nothing.
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
		return "it was made out to " + string(aic)
	}
	return ""
}

// serverProfile is that of v02.00 for a server: one usage, and the names of its hosts.
func serverProfile(hosts []string) profile {
	hosts = slices.Concat([]string{"localhost", "127.0.0.1", "::1"}, hosts)
	return profile{
		fresh: freshV2,
		hosts: hosts,
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

// leaderProfile is that of v02.00 for a client: one usage, and the bare AIC as its name.
func leaderProfile(want identity.AIC) profile {
	return profile{
		want:  want,
		fresh: freshV2,
		template: func(aic identity.AIC, now time.Time) *x509.Certificate {
			return leafTemplate(string(aic), "acps", aic, now, x509.ExtKeyUsageClientAuth)
		},
	}
}

// leaderV1Profile is that of v01.00, which has a domain behind the AIC and both usages in one certificate.
func leaderV1Profile(want identity.AIC) profile {
	return profile{
		want:  want,
		fresh: func() (identity.AIC, error) { return identity.MakeV1(identity.FieldsV1{}) },
		template: func(aic identity.AIC, now time.Time) *x509.Certificate {
			name := string(aic) + ".acps.pub"
			t := leafTemplate(name, "agent", aic, now, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth)
			t.DNSNames = []string{name}
			return t
		},
	}
}

func freshV2() (identity.AIC, error) { return identity.MakeV2(identity.FieldsV2{}, Salt) }

func rootTemplate(now time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:               subject("AIP gateway development root"),
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(rootValidity),
		IsCA:                  true,
		MaxPathLenZero:        true, // it signs leaves only
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
}

func leafTemplate(commonName, scheme string, aic identity.AIC, now time.Time, usage ...x509.ExtKeyUsage) *x509.Certificate {
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
