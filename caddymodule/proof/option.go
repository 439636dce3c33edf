// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
)

// Option returns what reads the option: the mode, or a block of proofs, or both. Syntax:
//
//	identity [required|optional|off] {
//		mtls
//		client_cert_header <name> rfc9440|xfcc|pem from <address>... {
//			trust_pool    <file>...
//			intermediates <file>...
//			revocation { ... }
//		}
//		jwt {
//			issuer         <issuer>
//			jwks           <url>
//			audience       <name>...
//			leader_claim   <name>
//			scopes         <scope>...
//			algorithms     <algorithm>...
//			leeway         <duration>
//			allow_networks <cidr>...
//			ca             <file>...
//		}
//		oidc <issuer> {
//			audience       <name>...
//			leader_claim   <name>
//			scopes         <scope>...
//			algorithms     <algorithm>...
//			leeway         <duration>
//			allow_networks <cidr>...
//			ca             <file>...
//		}
//		keys <file> {
//			header <name>
//		}
//		accept <dialect> <proof>...
//	}
func Option(p *conf.Parser, i *Identity) func() {
	return func() {
		switch args := p.RemainingArgs(); len(args) {
		case 0:
		case 1:
			i.Mode = args[0]
		default:
			p.Fail("identity needs required, optional or off, and a block of proofs if they are not a certificate")
			return
		}
		p.Block("identity", conf.Options{
			"mtls": func() {
				if i.MTLS = true; len(p.RemainingArgs()) > 0 {
					p.Fail("mtls takes no values")
				}
			},
			"client_cert_header": func() { readClientCertHeader(p, i) },
			"jwt":                func() { readJWT(p, i, "") },
			"oidc": func() {
				args := p.RemainingArgs()
				if len(args) != 1 {
					p.Fail("oidc needs the URL of the issuer")
					return
				}
				readJWT(p, i, args[0])
			},
			"keys": func() {
				args := p.RemainingArgs()
				if len(args) != 1 {
					p.Fail("keys needs the file with the keys")
					return
				}
				i.Keys = &Keys{File: args[0]}
				p.Block("keys", conf.Options{"header": p.Word(&i.Keys.Header)})
			},
			"accept": p.WordsOf(&i.Accept, "the name of a dialect and the proofs that it accepts: accept a2a jwt keys"),
		})
	}
}

// readClientCertHeader reads the option: the name, the form, from and the addresses, and a block.
func readClientCertHeader(p *conf.Parser, i *Identity) {
	args := p.RemainingArgs()
	if len(args) < 4 || args[2] != "from" {
		p.Fail("client_cert_header needs the name of the header, its form, from and the addresses of the proxy: " +
			"client_cert_header Client-Cert rfc9440 from 10.0.0.0/8")
		return
	}
	h := &ClientCertHeader{Header: args[0], Form: args[1], From: args[3:]}
	i.ClientCertHeader = h
	p.Block("client_cert_header", conf.Options{"trust_pool": p.Words(&h.TrustPool),
		"intermediates": p.Words(&h.Intermediates), "revocation": pki.RevocationOption(p, &h.Revocation)})
}

// readJWT reads the option jwt, or oidc, which names its issuer.
func readJWT(p *conf.Parser, i *Identity, issuer string) {
	j := JWT{Issuer: issuer}
	known := j.Options(p, conf.Options{
		"audience": p.Words(&j.Audience), "leader_claim": p.Word(&j.LeaderClaim), "scopes": p.Words(&j.Scopes),
	})
	name := "oidc"
	if issuer == "" {
		name = "jwt"
		known["issuer"], known["jwks"] = p.Word(&j.Issuer), p.Word(&j.JWKS)
	}
	p.Block(name, known)
	i.JWT = append(i.JWT, j)
}
