// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"crypto/x509"
	"fmt"
	"net/netip"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/authn"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// Authenticator reads what the settings name, and has the host ask sources about certificates below their roots. It
// fetches nothing. The verifiers of tokens must be closed.
func (i *Identity) Authenticator(host *pki.Host, keys *token.Keys) (a *authn.Authenticator, err error) {
	a = &authn.Authenticator{Certificates: i.MTLS || i.Mode == string(identity.Off)}
	repl := caddy.NewReplacer()
	if h := i.ClientCertHeader; h != nil {
		config := authn.ProxyConfig{Header: h.Header, Form: authn.Form(h.Form)}
		if config.From, config.Unix, err = proxyAddresses(h.From); err != nil {
			return nil, fmt.Errorf("identity: client_cert_header: %w", err)
		}
		roots, err := certfile.ReadAll(repl, h.TrustPool)
		if err != nil {
			return nil, fmt.Errorf("identity: client_cert_header: trust_pool: %w", err)
		}
		config.Roots = x509.NewCertPool()
		for _, root := range roots {
			config.Roots.AddCert(root)
		}
		if config.Intermediates, err = certfile.ReadAll(repl, h.Intermediates); err != nil {
			return nil, fmt.Errorf("identity: client_cert_header: intermediates: %w", err)
		}
		if a.Proxy, err = authn.NewProxy(config); err != nil {
			return nil, err
		}
		if h.Revocation != nil {
			if err := host.AskBelow(roots, h.Revocation); err != nil {
				return nil, fmt.Errorf("identity: client_cert_header: %w", err)
			}
		}
	}
	if i.Keys != nil {
		file, err := conf.Replace(repl, i.Keys.File)
		if err == nil {
			a.Keys, err = authn.ReadKeys(file, i.Keys.Header)
		}
		if err != nil {
			return nil, fmt.Errorf("identity: keys: %w", err)
		}
	}
	for n := range i.JWT {
		t, err := i.JWT[n].token(repl, keys)
		if err != nil {
			a.Close()
			return nil, fmt.Errorf("identity: jwt: %w", err)
		}
		a.Tokens = append(a.Tokens, t)
	}
	return a, nil
}

// token returns the verifier of the tokens.
func (j *JWT) token(repl *caddy.Replacer, keys *token.Keys) (*authn.Token, error) {
	config, err := j.Config(repl, keys)
	if err != nil {
		return nil, err
	}
	config.Issuer, config.JWKS, config.Audiences = j.Issuer, j.JWKS, j.Audience
	verifier, err := token.New(config)
	if err != nil {
		return nil, err
	}
	return &authn.Token{Verifier: verifier, Claim: j.LeaderClaim, Scopes: j.Scopes}, nil
}

// proxyAddresses reads the values of from.
func proxyAddresses(from []string) (prefixes []netip.Prefix, unix bool, err error) {
	for _, s := range from {
		if s == "unix" {
			unix = true
			continue
		}
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			addr, notOne := netip.ParseAddr(s)
			if notOne != nil {
				return nil, false, fmt.Errorf("from: %q is no network or address, such as 10.0.0.0/8, and not unix", s)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, unix, nil
}
