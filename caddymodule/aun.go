// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
	"github.com/aip-gateway/aip-gateway/node"
)

// AUN is the gateway as a gateway of AUN: clients connect to the site with the aip_aun directive, and reach all
// Partners with aun in their callers. Files are read when the configuration is loaded.
type AUN struct {
	// The AID of the gateway. Default: that of cert.
	AID string `json:"aid,omitempty"`

	// The PEM file with the key and the certificates of the gateway's AID, from `caddy aip aun-id`, with mode 0600.
	// Required.
	Cert string `json:"cert,omitempty"`

	// PEM files with the roots of clients' certificates, and issuers below them. Required.
	Roots []string `json:"roots,omitempty"`

	// Files with lists of revoked certificates, in PEM or DER; also served at /pki/crl.json. After a change run `caddy
	// reload --force`. Default: none.
	CRL []string `json:"crl,omitempty"`

	// The issuer of the gateway's tokens, auth.<name>. Default: that of aid.
	Issuer string `json:"issuer,omitempty"`

	// PEM files with the public keys of an issuer, for tokens of its own AIDs only. Other gateways serve theirs at
	// /pki/token-key.pem. Default: none.
	JWTKeys map[string][]string `json:"jwt_keys,omitempty"`

	// PEM files with the certificates of Partners' AIDs, for clients with verification. Default: none; the gateway makes
	// them.
	AgentCerts []string `json:"agent_certs,omitempty"`

	// Hosts of pages with scripts for AUN, beside that of the request. A star is any part of a name. Default: none.
	Origins []string `json:"origins,omitempty"`

	identity  *aun.Identity
	roots     *aun.Roots
	authority *aun.Authority
	agents    map[aun.AID][]*x509.Certificate
}

// aunOption returns what reads the option aun. Syntax:
//
//	aun {
//		aid     <aid>
//		cert    <file>
//		roots   <file>...
//		crl     <file>...
//		issuer  <name>
//		jwt_key <issuer> <file>...
//		agent_cert <file>...
//		origins <host>...
//	}
func aunOption(p *conf.Parser, into **AUN) func() {
	return func() {
		a := new(AUN)
		*into = a
		p.Section(conf.Options{
			"aid":        p.Word(&a.AID),
			"cert":       p.Word(&a.Cert),
			"roots":      p.Words(&a.Roots),
			"crl":        p.Words(&a.CRL),
			"issuer":     p.Word(&a.Issuer),
			"jwt_key":    p.WordsOf(&a.JWTKeys, "the issuer that the keys are of, and their files: jwt_key aid.pub <file>"),
			"agent_cert": p.Words(&a.AgentCerts),
			"origins":    p.Words(&a.Origins),
		})()
	}
}

// client returns what the connections to agents of AUN have in common: the gateway's identity and its roots.
func (a *AUN) client() aun.ClientConfig {
	if a == nil {
		return aun.ClientConfig{}
	}
	return aun.ClientConfig{Identity: a.identity, Roots: a.roots}
}

// provision reads the files.
func (a *AUN) provision() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("aun: %w", err)
		}
	}()
	repl := caddy.NewReplacer()
	if a.Cert == "" || len(a.Roots) == 0 {
		return errors.New("cert and roots are needed: the gateway's own key and certificates, and the roots of its clients")
	}
	if a.identity, err = agents.ReadIdentity(repl, a.Cert); err != nil {
		return fmt.Errorf("cert: %w", err)
	}
	if a.AID != "" {
		aid, err := aun.ParseAID(a.AID)
		if err != nil {
			return fmt.Errorf("aid: %w", err)
		}
		if aid != a.identity.AID {
			return fmt.Errorf("aid: it is %s, but the certificate is that of %s", aid, a.identity.AID)
		}
	}
	key := sha256.New()
	key.Write([]byte(a.identity.CertPEM() + a.Issuer))
	if a.roots, err = agents.ReadRoots(repl, a.Roots); err != nil {
		return err
	}
	key.Write(a.roots.PEM())
	for _, file := range a.CRL {
		text, err := conf.ReadFile(repl, file)
		if err == nil {
			err = a.roots.Revoke(text)
		}
		if err != nil {
			return fmt.Errorf("crl: %s: %w", file, err)
		}
		key.Write(text)
	}
	if a.agents, err = a.readAgentCerts(repl); err != nil {
		return err
	}
	foreign := make(map[string][]*ecdsa.PublicKey)
	for _, issuer := range slices.Sorted(maps.Keys(a.JWTKeys)) {
		if _, err := aun.ParseAID("any." + issuer); err != nil || issuer != strings.ToLower(issuer) {
			return fmt.Errorf("jwt_key: %q is not the name of an issuer; write the issuer that the keys are of before "+
				"their files: jwt_key aid.pub <file>", issuer)
		}
		key.Write([]byte(issuer))
		for _, file := range a.JWTKeys[issuer] {
			text, err := conf.ReadFile(repl, file)
			if err != nil {
				return fmt.Errorf("jwt_key: %w", err)
			}
			public, err := publicKeys(text)
			if err != nil {
				return fmt.Errorf("jwt_key: %s: %w", file, err)
			}
			foreign[issuer] = append(foreign[issuer], public...)
			key.Write(text)
		}
	}
	a.authority, err = process.Authorities.Get([32]byte(key.Sum(nil)), aun.AuthorityConfig{
		Identity: a.identity, Roots: a.roots, Issuer: a.Issuer, ForeignKeys: foreign,
	})
	return err
}

// publicKeys reads all public keys, and those of all certificates, from PEM.
func publicKeys(text []byte) (all []*ecdsa.PublicKey, err error) {
	for block, err := range pemtext.Blocks(text, append([]string{"PUBLIC KEY"}, pemtext.Certificate...)...) {
		if err != nil {
			return nil, err
		}
		var parsed any
		if block.Type == "PUBLIC KEY" {
			parsed, err = x509.ParsePKIXPublicKey(block.Bytes)
		} else if cert, certErr := x509.ParseCertificate(block.Bytes); certErr == nil {
			parsed = cert.PublicKey
		} else {
			err = certErr
		}
		key, ok := parsed.(*ecdsa.PublicKey)
		if err != nil || !ok {
			return nil, fmt.Errorf("its block %q has no public key of ECDSA", block.Type)
		}
		all = append(all, key)
	}
	if len(all) == 0 {
		return nil, errors.New(`it has no PEM block "PUBLIC KEY" or "CERTIFICATE"`)
	}
	return all, nil
}

// config returns what the settings are for the node; nil if there are none.
func (a *AUN) config(ids *identity.Identities, access func(*http.Request) *slog.Logger) *node.AUN {
	if a == nil {
		return nil
	}
	return &node.AUN{Authority: a.authority, Identity: a.identity, Roots: a.roots, Identities: ids,
		Origins: a.Origins, Agents: a.agents, URL: aunURL, Address: clientAddress, AccessLog: access}
}

// clientAddress returns the address of a client, behind the proxies that the server trusts.
func clientAddress(r *http.Request) string {
	if address, ok := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string); ok && address != "" {
		return address
	}
	return r.RemoteAddr
}

// aunURL returns the URL at which AUN clients connect, for a request to a host.
func aunURL(r *http.Request) string {
	if r.TLS == nil {
		return "ws://" + r.Host + "/aun"
	}
	return "wss://" + r.Host + "/aun"
}

// readAgentCerts reads the certificates of agents' AIDs, which lead to the roots. What else the files hold, such as a
// private key, is not read. A certificate that has ended is left out.
func (a *AUN) readAgentCerts(repl *caddy.Replacer) (map[aun.AID][]*x509.Certificate, error) {
	all := make(map[aun.AID][]*x509.Certificate)
	for _, file := range a.AgentCerts {
		aid, chain, err := a.readAgentCert(repl, file)
		switch {
		case errors.Is(err, errEnded):
			continue // it is logged with all that have ended
		case err != nil:
		case aid == a.identity.AID:
			err = fmt.Errorf("it is that of %s, the gateway's own AID; leave it out, since cert has it", aid)
		case all[aid] != nil:
			err = fmt.Errorf("another file has a certificate of %s, too; leave one of them out", aid)
		}
		if err != nil {
			return nil, fmt.Errorf("agent_cert: %s: %w", file, err)
		}
		all[aid] = chain
	}
	return all, nil
}

// errEnded says that a certificate has ended.
var errEnded = errors.New("the certificate has ended")

func (a *AUN) readAgentCert(repl *caddy.Replacer, file string) (aun.AID, []*x509.Certificate, error) {
	text, err := conf.ReadFile(repl, file)
	if err != nil {
		return "", nil, err
	}
	chain, err := aun.ParseChain(string(text))
	if err == nil && len(chain) > 0 && time.Now().After(chain[0].NotAfter) {
		return "", nil, errEnded
	}
	if err == nil {
		var cert *aun.Certificate
		if cert, err = a.roots.Verify("", chain); err == nil {
			return cert.AID, chain, nil
		}
	}
	if e, ok := errors.AsType[*aun.Error](err); ok {
		err = errors.New(e.Message)
	}
	return "", nil, err
}
