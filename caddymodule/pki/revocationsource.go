// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// RevocationSource says which certificates are revoked.
type RevocationSource struct {
	// crl: lists of revoked certificates. ocsp: a responder. acps: the JSON status of an authority of ACPs. registry: the
	// active agents of a registry of ACPs.
	Kind string `json:"kind"`

	// The file of a list, complete or a delta, in PEM or DER, read again after a change; or a URL: of a list, of a
	// responder (default: the certificate's own), of an authority or a registry (https with ca, or on this host).
	Location string `json:"location,omitempty"`

	// Asks no responder: only the answers from callers count, in TLS 1.3.
	Staples bool `json:"staples,omitempty"`
}

// listsOption returns what reads the lists of a line.
func listsOption(p *conf.Parser, into *[]RevocationSource) func() {
	return func() {
		var names []string
		p.Words(&names)()
		for _, name := range names {
			*into = append(*into, RevocationSource{Kind: string(revocation.CRL), Location: name})
		}
	}
}

// ocspOption returns what reads a source of OCSP.
func ocspOption(p *conf.Parser, into *[]RevocationSource) func() {
	return func() {
		switch {
		case p.NextArg() && p.Val() == "query":
			sourceOption(p, revocation.OCSP, into)()
		case p.Val() == "staple":
			*into = append(*into, RevocationSource{Kind: string(revocation.OCSP), Staples: true})
		default:
			p.Fail("ocsp is written as: ocsp query, with the URL of a responder behind it or none; or: ocsp staple")
		}
	}
}

// sourceOption returns what reads a source that is asked.
func sourceOption(p *conf.Parser, kind revocation.Kind, into *[]RevocationSource) func() {
	return func() {
		s := RevocationSource{Kind: string(kind)}
		if p.NextArg() {
			s.Location = p.Val()
		}
		p.Block(string(kind), nil) // of an earlier version: says where its options belong
		*into = append(*into, s)
	}
}

// isFile reports whether the source is a list in a file, which a placeholder decides, too.
func (s *RevocationSource) isFile() bool {
	return s.Kind == string(revocation.CRL) && !strings.Contains(caddy.NewReplacer().ReplaceAll(s.Location, ""), "://")
}

// config returns the source, and reads no list.
func (s *RevocationSource) config() (c revocation.Source, err error) {
	c = revocation.Source{Kind: revocation.Kind(s.Kind), Staples: s.Staples}
	if c.Location, err = conf.Replace(caddy.NewReplacer(), s.Location); err != nil {
		return c, fmt.Errorf("revocation: %s %w", s.Kind, err)
	}
	if s.isFile() {
		if c.Location, err = filepath.Abs(c.Location); err != nil {
			return c, fmt.Errorf("revocation: crl: %w", err)
		}
	}
	return c, nil
}
