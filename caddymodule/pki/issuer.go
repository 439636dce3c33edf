// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/upstream/callerinfo"
)

func init() {
	caddy.RegisterModule(new(JWKS))
	httpcaddyfile.RegisterHandlerDirective("aip_jwks", conf.Handler[JWKS])
	httpcaddyfile.RegisterDirectiveOrder("aip_jwks", httpcaddyfile.Before, "respond")
}

// OwnIssuer signs the tokens by which the gateway names callers to agents.
type OwnIssuer struct {
	// Its name, iss in its tokens, such as the URL of the gateway.
	Name string `json:"name"`

	// PEM files with private keys for ES256 (P-256) or EdDSA (Ed25519), read at load. The first signs; aip_jwks serves the
	// public ones of all. Required.
	Keys []string `json:"keys"`
}

// IssuerOption returns what reads the option issuer. Syntax:
//
//	issuer <name> {
//		keys <file>...
//	}
func IssuerOption(p *conf.Parser, into **OwnIssuer) func() {
	return func() {
		*into = new(OwnIssuer)
		name := p.Val()
		p.Word(&(*into).Name)()
		p.Block(name, conf.Options{"keys": p.Words(&(*into).Keys)})
	}
}

// Read returns what signs; nil without an issuer.
func (i *OwnIssuer) Read() (*callerinfo.Issuer, error) {
	if i == nil {
		return nil, nil
	}
	repl := caddy.NewReplacer()
	var keys []crypto.Signer
	for _, file := range i.Keys {
		text, err := conf.ReadFile(repl, file)
		if err != nil {
			return nil, fmt.Errorf("issuer: keys: %w", err)
		}
		found, err := callerinfo.ParseKeys(text)
		if err != nil {
			return nil, fmt.Errorf("issuer: keys: %s: %w", file, err)
		}
		keys = append(keys, found...)
	}
	signer, err := callerinfo.NewIssuer(i.Name, keys)
	if err != nil {
		return nil, fmt.Errorf("issuer: %w", err)
	}
	return signer, nil
}

// JWKS serves the public keys of issuer, as a set to keep for five minutes. It answers every request, so give it a
// matcher: aip_jwks /.well-known/jwks.json.
type JWKS struct{ keys []byte }

// CaddyModule returns the Caddy module information.
func (*JWKS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_jwks", New: func() caddy.Module { return new(JWKS) }}
}

// Provision sets up the handler.
func (j *JWKS) Provision(ctx caddy.Context) error {
	host, err := hostOf(ctx)
	if err != nil {
		return err
	}
	if host.Issuer == nil {
		return errors.New("there are no keys; set issuer in the global option aip")
	}
	j.keys = host.Issuer.JWKS()
	return nil
}

// ServeHTTP serves the keys.
func (j *JWKS) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return caddyhttp.Error(http.StatusMethodNotAllowed, nil)
	}
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "max-age=300")
	w.Header().Set("Content-Length", strconv.Itoa(len(j.keys)))
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := w.Write(j.keys)
	return err
}

// UnmarshalCaddyfile reads the directive. Syntax:
//
//	aip_jwks [<matcher>]
func (*JWKS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error { return conf.ReadDirective(d) }

// Interface guards.
var (
	_ caddy.Provisioner           = (*JWKS)(nil)
	_ caddyhttp.MiddlewareHandler = (*JWKS)(nil)
	_ caddyfile.Unmarshaler       = (*JWKS)(nil)
)
