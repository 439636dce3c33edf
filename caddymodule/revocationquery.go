// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/revocation"
)

// RevocationQuery is a source that is asked about certificates that no list covers.
type RevocationQuery struct {
	// How it is asked: ocsp, or acps (the JSON status of a certificate authority of ACPs, which is not signed).
	Kind string `json:"kind"`

	// The URL of the responder, by default the one that each certificate names; or of the authority: https with roots of
	// its own, or on this host.
	URL string `json:"url,omitempty"`

	// How many requests are made in any minute. Default: 60.
	Rate int `json:"rate,omitempty"`

	// For how long one answer is waited for. Default: 3s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// The PEM files of the roots that its certificate is checked against. Default: those of the system.
	CA []string `json:"ca,omitempty"`

	// Whether the answer that a certificate is unknown refuses it. Default: it is no answer.
	RefuseUnknown bool `json:"refuse_unknown,omitempty"`
}

// query returns what reads a source that is asked. Syntax:
//
//	ocsp query [<url>] | acps <url> {
//		rate    <n>/m
//		timeout <duration>
//		ca      <file>...
//		unknown refuse
//	}
func (p *parser) query(kind revocation.Kind, into *[]RevocationQuery) func() {
	return func() {
		q := RevocationQuery{Kind: string(kind)}
		if kind == revocation.OCSP && (!p.NextArg() || p.Val() != "query") {
			p.fail("ocsp is written as: ocsp query, with the URL of a responder behind it or none")
			return
		}
		if p.NextArg() {
			q.URL = p.Val()
		}
		p.block(string(kind), options{
			"rate": value(p, &q.Rate, "a number a minute, such as 60/m", func(s string) (int, error) {
				return strconv.Atoi(strings.TrimSuffix(s, "/m"))
			}),
			"timeout": p.duration(&q.Timeout),
			"ca":      p.words(&q.CA),
			"unknown": func() {
				if !p.NextArg() || p.Val() != "refuse" {
					p.fail("unknown is written as: unknown refuse")
				}
				q.RefuseUnknown = true
			},
		})
		*into = append(*into, q)
	}
}

// config reads the roots of the source.
func (q *RevocationQuery) config() (c revocation.Query, err error) {
	c = revocation.Query{Kind: revocation.Kind(q.Kind), URL: q.URL, Rate: q.Rate, Timeout: time.Duration(q.Timeout),
		RefuseUnknown: q.RefuseUnknown}
	for _, file := range q.CA {
		all, err := doctor.ReadCertificates(file)
		if err != nil {
			return c, fmt.Errorf("revocation: %s: ca: %s: %w", q.Kind, file, err)
		}
		if c.Roots == nil {
			c.Roots = x509.NewCertPool()
		}
		for _, cert := range all {
			c.Roots.AddCert(cert)
		}
	}
	return c, nil
}
