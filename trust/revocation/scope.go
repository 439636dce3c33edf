// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto/x509"
	"errors"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	der "golang.org/x/crypto/cryptobyte/asn1"
)

// scope is the set of an issuer's certificates a list is for, by its issuing distribution point (RFC 5280 §5.2.5). The
// zero scope is all of them.
type scope struct {
	raw    string // in DER
	users  bool   // not those of issuers
	cas    bool   // those of issuers alone
	points []string
	point  bool // only those naming one of points
}

func readScope(raw []byte) (s scope, err error) {
	s.raw = string(raw)
	input := cryptobyte.String(raw)
	var fields cryptobyte.String
	if !input.ReadASN1(&fields, der.SEQUENCE) || !input.Empty() {
		return s, errSyntax
	}
	var name cryptobyte.String
	if !fields.ReadOptionalASN1(&name, &s.point, der.Tag(0).ContextSpecific().Constructed()) {
		return s, errSyntax
	}
	if s.point {
		if s.points, err = readPoints(name); err != nil {
			return s, err
		}
	}
	for !fields.Empty() {
		var value cryptobyte.String
		var tag der.Tag
		if !fields.ReadAnyASN1(&value, &tag) {
			return s, errSyntax
		}
		set := len(value) == 1 && value[0] != 0
		switch {
		case tag == der.Tag(1).ContextSpecific():
			s.users = set
		case tag == der.Tag(2).ContextSpecific():
			s.cas = set
		case tag == der.Tag(3).ContextSpecific():
			return s, errors.New("it is for some reasons of a revocation alone")
		case tag == der.Tag(4).ContextSpecific() && set:
			return s, errors.New("it may have entries of other issuers")
		case tag == der.Tag(5).ContextSpecific() && set:
			return s, errors.New("it is for attribute certificates")
		}
	}
	if s.users && s.cas {
		return s, errors.New("it is for no certificates")
	}
	return s, nil
}

// readPoints reads the URIs of a DistributionPointName.
func readPoints(name cryptobyte.String) (points []string, err error) {
	var full cryptobyte.String
	if !name.ReadASN1(&full, der.Tag(0).ContextSpecific().Constructed()) {
		return nil, errors.New("its distribution point has no full name")
	}
	for !full.Empty() {
		var value cryptobyte.String
		var tag der.Tag
		if !full.ReadAnyASN1(&value, &tag) {
			return nil, errSyntax
		}
		if tag == der.Tag(6).ContextSpecific() { // uniformResourceIdentifier
			points = append(points, string(value))
		}
	}
	return points, nil
}

// has reports whether a certificate is in the scope.
func (s *scope) has(cert *x509.Certificate) bool {
	switch {
	case s.users && cert.IsCA, s.cas && !cert.IsCA:
		return false
	case s.point:
		return slices.ContainsFunc(s.points, func(p string) bool {
			return slices.Contains(cert.CRLDistributionPoints, p)
		})
	}
	return true
}
