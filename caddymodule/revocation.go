// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/revocation"
)

func init() { caddy.RegisterModule(new(RevocationVerifier)) }

// Revocation says how it is found out which certificates of callers are revoked. Each certificate below the root needs
// an answer of a source, or it is refused.
type Revocation struct {
	// The files and URLs of the lists of revoked certificates (CRLs) of the issuers, complete ones and deltas, in PEM or
	// DER. A file is read again when it has changed. Lists of URLs are kept in Caddy's data directory.
	CRL []string `json:"crl,omitempty"`

	// What is asked about certificates that no list covers, in this order. Default: nothing.
	Queries []RevocationQuery `json:"queries,omitempty"`

	// The size of the largest list, in bytes. A larger one is not read. Default: 16 MiB.
	MaxSize int64 `json:"max_size,omitempty"`

	// How often a URL is asked whether its list has changed. Default: 5m.
	Refresh caddy.Duration `json:"refresh,omitempty"`

	// How old a list may be that has not ended. Older ones give no answer. Default: any age.
	MaxAge caddy.Duration `json:"max_age,omitempty"`

	// For how long a list counts after its end. Default: none.
	Grace caddy.Duration `json:"grace,omitempty"`

	// For how long after the last good answer callers are let in of whom nothing newer is known. Those that are known as
	// revoked stay refused. Default: none.
	Degrade caddy.Duration `json:"degrade,omitempty"`

	checker *revocation.Checker
}

// parse returns what reads the option. Syntax:
//
//	revocation {
//		crl      <file|url>...
//		ocsp     query [<url>] { ... }
//		acps     <url> { ... }
//		max_size <size>
//		refresh  <duration>
//		max_age  <duration>
//		grace    <duration>
//		degrade  allow <duration>
//	}
func (p *parser) revocation(into **Revocation) func() {
	return func() {
		r := new(Revocation)
		*into = r
		p.section(options{
			"crl":      p.words(&r.CRL),
			"ocsp":     p.query(revocation.OCSP, &r.Queries),
			"acps":     p.query(revocation.ACPS, &r.Queries),
			"max_size": size(p, &r.MaxSize),
			"refresh":  p.duration(&r.Refresh),
			"max_age":  p.duration(&r.MaxAge),
			"grace":    p.duration(&r.Grace),
			"degrade": func() {
				if !p.NextArg() || p.Val() != "allow" {
					p.fail("degrade is written as: degrade allow 4h")
					return
				}
				p.duration(&r.Degrade)()
			},
		})()
	}
}

// provision makes the checker. It reads no list, and fetches nothing.
func (r *Revocation) provision() error {
	if r == nil {
		return nil
	}
	repl := caddy.NewReplacer()
	lists := make([]string, len(r.CRL))
	for i, name := range r.CRL {
		lists[i] = repl.ReplaceAll(name, "")
		if isURL(name) {
			continue
		}
		path, err := filepath.Abs(lists[i])
		if err != nil {
			return fmt.Errorf("revocation: crl: %w", err)
		}
		lists[i] = path
	}
	queries := make([]revocation.Query, len(r.Queries))
	for i := range r.Queries {
		var err error
		if queries[i], err = r.Queries[i].config(); err != nil {
			return err
		}
	}
	var err error
	r.checker, err = revocation.New(revocation.Config{
		Lists: lists, Queries: queries, MaxSize: r.MaxSize, Refresh: time.Duration(r.Refresh),
		Dir: filepath.Join(caddy.AppDataDir(), "aip-revocation"), MaxAge: time.Duration(r.MaxAge),
		Grace: time.Duration(r.Grace), Degrade: time.Duration(r.Degrade), Log: slog.New(processLog{name: "aip"}),
	})
	if err != nil {
		return fmt.Errorf("revocation: %w", err)
	}
	return nil
}

// isURL reports whether a list comes from a URL.
func isURL(list string) bool { return strings.Contains(list, "://") }

// start begins to follow the sources.
func (r *Revocation) start() { r.checker.Start() }

// stop ends that. What is known goes on to count, for connections that are open.
func (r *Revocation) stop() {
	if r.checker != nil {
		r.checker.Close()
	}
}

// RevocationVerifier has the handshake of a site refuse certificates that are revoked, by the sources of the app's
// option revocation. It sends no query: a handshake comes before the key of the certificate is proven.
type RevocationVerifier struct{ app *App }

// CaddyModule returns the Caddy module information.
func (*RevocationVerifier) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.client_auth.verifier.aip_revocation",
		New: func() caddy.Module { return new(RevocationVerifier) }}
}

// Provision finds the sources.
func (v *RevocationVerifier) Provision(ctx caddy.Context) error {
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	v.app = app.(*App)
	if v.app.Revocation == nil {
		return errors.New("aip_revocation needs sources: write the global option aip { revocation { crl <file> } }")
	}
	return nil
}

// UnmarshalCaddyfile sets up the verifier from a Caddyfile. It has no settings.
func (*RevocationVerifier) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return readDirective(d, nil)
}

// startLimit is how long a handshake waits for the app, which may start after the server.
const startLimit = 10 * time.Second

// VerifyClientCertificate implements caddytls.ClientCertificateVerifier. Certificates that TLS has not verified are no
// proof, and are not judged.
func (v *RevocationVerifier) VerifyClientCertificate(_ [][]byte, chains [][]*x509.Certificate) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	if len(chains) == 0 {
		return nil
	}
	if bad := v.app.ready(ctx); bad != nil {
		return bad
	}
	for _, chain := range chains {
		bad := v.app.Revocation.checker.Known(chain)
		if bad == nil {
			return nil
		}
		err = cmp.Or(err, bad)
	}
	refusedHandshakes.note(chains[0], err)
	return err
}

// Interface guards.
var (
	_ caddy.Provisioner                  = (*RevocationVerifier)(nil)
	_ caddyfile.Unmarshaler              = (*RevocationVerifier)(nil)
	_ caddytls.ClientCertificateVerifier = (*RevocationVerifier)(nil)
)
