// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// Revocation says how it is found out which certificates of callers are revoked. Each certificate below the root needs
// an answer of a source, or it is refused.
type Revocation struct {
	// Sources count in their order, but lists before all others. One is required.
	Sources []RevocationSource `json:"sources,omitempty"`

	// PEM files with the roots of the sources' certificates for https. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// Requests a minute to each source of ocsp or acps. Default: 50.
	Rate int `json:"rate,omitempty"`

	// Refuses a certificate unknown to such a source. Default: it is no answer.
	RefuseUnknown bool `json:"refuse_unknown,omitempty"`

	// The greatest age of a source's last good answer, even before its end. An older one refuses. Sources are asked again
	// after half of it, and 5 minutes at the latest. Default: any age.
	MaxAge caddy.Duration `json:"max_age,omitempty"`

	// The time for a list or an answer to count after its end. Default: none.
	Grace caddy.Duration `json:"grace,omitempty"`

	checker *revocation.Checker
	shared  *sharedChecker // while it is in use
	key     string         // of shared
}

// sharedChecker is the checker of configurations with the same settings.
type sharedChecker struct {
	*revocation.Checker
	feeds []*node.Feed // that it follows
	start sync.Once
}

// newChecker returns a checker with the feeds of its registries. roots are those of config.
func (p *Process) newChecker(config revocation.Config, roots []*x509.Certificate) (c *sharedChecker, err error) {
	c = new(sharedChecker)
	for i := range config.Sources {
		s := &config.Sources[i]
		if s.Kind != revocation.Registry {
			continue
		}
		feed, err := p.node.Feeds.Use(s.Location, roots, p.log("aip"))
		if err != nil {
			c.leave()
			return nil, err
		}
		c.feeds, s.Feed = append(c.feeds, feed), feed.Feed
	}
	if c.Checker, err = revocation.New(config); err != nil {
		c.leave()
		return nil, err
	}
	return c, nil
}

func (c *sharedChecker) leave() {
	for _, feed := range c.feeds {
		feed.Leave()
	}
}

// Destruct implements caddy.Destructor.
func (c *sharedChecker) Destruct() error {
	c.Close()
	c.leave()
	return nil
}

// RevocationOption returns what reads the option. Syntax:
//
//	revocation {
//		crl      <file|url>...
//		ocsp     staple
//		ocsp     query [<url>]
//		acps     <url>
//		registry <url>
//		ca       <file>...
//		rate     <n>/m
//		unknown  refuse
//		max_age  <duration>
//		grace    <duration>
//	}
func RevocationOption(p *conf.Parser, into **Revocation) func() {
	return func() {
		r := new(Revocation)
		*into = r
		p.Section(conf.Options{
			"crl":      listsOption(p, &r.Sources),
			"ocsp":     ocspOption(p, &r.Sources),
			"acps":     sourceOption(p, revocation.ACPS, &r.Sources),
			"registry": sourceOption(p, revocation.Registry, &r.Sources),
			"ca":       p.Words(&r.CA),
			"rate": conf.Value(p, &r.Rate, "a number a minute, such as 50/m", func(text string) (int, error) {
				return strconv.Atoi(strings.TrimSuffix(text, "/m"))
			}),
			"unknown": func() {
				if r.RefuseUnknown = p.NextArg() && p.Val() == "refuse"; !r.RefuseUnknown {
					p.Fail("unknown is written as: unknown refuse")
				}
			},
			"max_age": p.Duration(&r.MaxAge),
			"grace":   p.Duration(&r.Grace),
		})()
	}
}

// provision makes the checker, or takes that of a configuration that runs. It reads no list, and fetches nothing. stop
// must be called afterwards.
func (r *Revocation) provision(p *Process) error {
	config := revocation.Config{Rate: r.Rate, RefuseUnknown: r.RefuseUnknown,
		Dir:    filepath.Join(caddy.AppDataDir(), "aip-revocation"),
		MaxAge: time.Duration(r.MaxAge), Grace: time.Duration(r.Grace)}
	for i := range r.Sources {
		source, err := r.Sources[i].config()
		if err != nil {
			return err
		}
		config.Sources = append(config.Sources, source)
	}
	roots, err := certfile.ReadRoots(r.CA)
	if err != nil {
		return fmt.Errorf("revocation: %w", err)
	}
	key := sha256.New()
	fmt.Fprintf(key, "%+v", config)
	for _, cert := range roots {
		key.Write(cert.Raw)
	}
	config.Roots, config.Agent, config.Log = node.PoolOf(roots), AgentOf, p.log("aip")
	r.key = string(key.Sum(nil))
	shared, _, err := p.checkers.LoadOrNew(r.key, func() (caddy.Destructor, error) { return p.newChecker(config, roots) })
	if err != nil {
		return fmt.Errorf("revocation: %w", err)
	}
	r.shared = shared.(*sharedChecker)
	r.checker = r.shared.Checker
	return nil
}

// start begins to follow the sources, unless another configuration has.
func (r *Revocation) start() { r.shared.start.Do(r.checker.Start) }

// stop ends the use of the checker; the last stop ends that. What is known goes on to count, for connections that are
// open.
func (r *Revocation) stop(p *Process) {
	if r.shared != nil {
		_, _ = p.checkers.Delete(r.key) // which has no error
		r.shared = nil
	}
}

// Files returns the files of lists.
func (r *Revocation) Files() (files []string) {
	for i := range r.Sources {
		if r.Sources[i].isFile() {
			files = append(files, r.Sources[i].Location)
		}
	}
	return files
}
