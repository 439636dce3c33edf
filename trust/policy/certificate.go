// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// attributes are the attributes of a certificate for use in conditions. Each reports whether one of some values is
// there.
var attributes = map[string]func(c *x509.Certificate, values []string) bool{
	"common_name":         func(c *x509.Certificate, v []string) bool { return slices.Contains(v, c.Subject.CommonName) },
	"organization":        func(c *x509.Certificate, v []string) bool { return meet(c.Subject.Organization, v) },
	"organizational_unit": func(c *x509.Certificate, v []string) bool { return meet(c.Subject.OrganizationalUnit, v) },
	"country":             func(c *x509.Certificate, v []string) bool { return meet(c.Subject.Country, v) },
	"province":            func(c *x509.Certificate, v []string) bool { return meet(c.Subject.Province, v) },
	"locality":            func(c *x509.Certificate, v []string) bool { return meet(c.Subject.Locality, v) },
	"issuer":              func(c *x509.Certificate, v []string) bool { return slices.Contains(v, c.Issuer.CommonName) },
	"dns":                 func(c *x509.Certificate, v []string) bool { return meet(c.DNSNames, v) },
	"email":               func(c *x509.Certificate, v []string) bool { return meet(c.EmailAddresses, v) },
	"serial": func(c *x509.Certificate, v []string) bool {
		return slices.Contains(v, strings.ToLower(c.SerialNumber.Text(16)))
	},
	"uri": func(c *x509.Certificate, v []string) bool {
		for _, u := range c.URIs {
			if slices.Contains(v, u.String()) {
				return true
			}
		}
		return false
	},
}

// meet reports whether two lists have an entry in common.
func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}

// certified holds if the certificate of the caller's proof has an attribute with one of a few values.
type certified struct {
	has    func(*x509.Certificate, []string) bool
	values []string
}

func certificateHas(name string, values []string) (condition, error) {
	has := attributes[name]
	if has == nil {
		return nil, fmt.Errorf("there is no such attribute, but %s",
			strings.Join(slices.Sorted(maps.Keys(attributes)), ", "))
	}
	if name == "serial" {
		values = slices.Clone(values)
		for i, v := range values { // as other tools write it
			values[i] = strings.TrimLeft(strings.ToLower(strings.ReplaceAll(v, ":", "")), "0")
		}
	}
	return certified{has, values}, nil
}

func (h certified) holds(c *Call) bool {
	chains := c.Peer.Chains
	return c.Peer.Verified() && len(chains) > 0 && len(chains[0]) > 0 && h.has(chains[0][0], h.values)
}
