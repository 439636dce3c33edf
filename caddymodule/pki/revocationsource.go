// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/node"
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

	// Requests a minute. Default: 60.
	Rate int `json:"rate,omitempty"`

	// The time for one answer. Default: 3s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// PEM files with the roots of its certificate. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// Refuses a certificate unknown to the source. Default: it is no answer.
	RefuseUnknown bool `json:"refuse_unknown,omitempty"`
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

// sourceOption returns what reads a source that is asked. A registry has no rate, timeout and unknown.
func sourceOption(p *conf.Parser, kind revocation.Kind, into *[]RevocationSource) func() {
	return func() {
		s := RevocationSource{Kind: string(kind)}
		if p.NextArg() {
			s.Location = p.Val()
		}
		in := conf.Options{"ca": p.Words(&s.CA)}
		if kind != revocation.Registry {
			in["rate"] = conf.Value(p, &s.Rate, "a number a minute, such as 60/m", func(text string) (int, error) {
				return strconv.Atoi(strings.TrimSuffix(text, "/m"))
			})
			in["timeout"] = p.Duration(&s.Timeout)
			in["unknown"] = func() {
				if !p.NextArg() || p.Val() != "refuse" {
					p.Fail("unknown is written as: unknown refuse")
				}
				s.RefuseUnknown = true
			}
		}
		p.Block(string(kind), in)
		*into = append(*into, s)
	}
}

// isFile reports whether the source is a list in a file.
func (s *RevocationSource) isFile() bool {
	return s.Kind == string(revocation.CRL) && !strings.Contains(s.Location, "://")
}

// config reads the roots of the source, and no list. It adds to key what the source is made of.
func (s *RevocationSource) config(key hash.Hash) (c revocation.Source, roots []*x509.Certificate, err error) {
	if s.Kind == string(revocation.Registry) && (s.Rate != 0 || s.Timeout != 0 || s.RefuseUnknown) {
		return c, nil, errors.New("revocation: a registry has no rate, timeout and refuse_unknown; leave them out")
	}
	c = revocation.Source{Kind: revocation.Kind(s.Kind), Staples: s.Staples, Rate: s.Rate,
		Timeout: time.Duration(s.Timeout), RefuseUnknown: s.RefuseUnknown}
	c.Location = caddy.NewReplacer().ReplaceAll(s.Location, "")
	if s.isFile() {
		if c.Location, err = filepath.Abs(c.Location); err != nil {
			return c, nil, fmt.Errorf("revocation: crl: %w", err)
		}
	}
	fmt.Fprintf(key, "%+v", c)
	if roots, err = certfile.ReadRoots(s.CA); err != nil {
		return c, nil, fmt.Errorf("revocation: %s: %w", s.Kind, err)
	}
	for _, cert := range roots {
		key.Write(cert.Raw)
	}
	c.Roots = node.PoolOf(roots)
	return c, roots, nil
}
