// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/front/httpfront"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/trust/authn"
)

// Identity says how callers prove who they are. In JSON, the mode alone may stand for it.
type Identity struct {
	// required (every caller proves its name), optional (callers without a proof are kept apart) or off (senderId is
	// believed; for development). Mounts of one Partner share tasks whatever theirs. Default: required.
	Mode string `json:"mode,omitempty"`

	// The client certificate with an AIC is a proof. Default: true without another proof.
	MTLS bool `json:"mtls,omitempty"`

	// A certificate in a header from a proxy is a proof. Default: none; no header is believed.
	ClientCertHeader *ClientCertHeader `json:"client_cert_header,omitempty"`

	// A token of an issuer is a proof, the Leader jwt:<issuer>|<name>. May be repeated. Default: none.
	JWT []JWT `json:"jwt,omitempty"`

	// A key is a proof, the Leader key:<name>. Default: none.
	Keys *Keys `json:"keys,omitempty"`

	// Proofs for a dialect (a2a: all versions): mtls, client_cert_header, jwt, keys. Default: the first two for aip and
	// aip/2, all for others.
	Accept map[string][]string `json:"accept,omitempty"`
}

// ClientCertHeader says which proxy hands on client certificates, and how.
type ClientCertHeader struct {
	// The header, removed from every request.
	Header string `json:"header"`

	// Its form: rfc9440, xfcc (Envoy) or pem (percent-encoded, as nginx).
	Form string `json:"form"`

	// Addresses or networks of the proxy, or unix.
	From []string `json:"from"`

	// PEM files with the roots of these certificates. Required.
	TrustPool []string `json:"trust_pool"`

	// PEM files with intermediates. Default: none.
	Intermediates []string `json:"intermediates,omitempty"`

	// Sources for certificates below these roots, with a proxy or without. Handlers with one root have the same. Default:
	// the option revocation.
	Revocation *pki.Revocation `json:"revocation,omitempty"`
}

// JWT says which tokens of an issuer are proofs. The Leader is jwt:<issuer>|<name>.
type JWT struct {
	// The claim iss.
	Issuer string `json:"issuer"`

	// The https URL of its keys. Default: as its OpenID configuration says.
	JWKS string `json:"jwks,omitempty"`

	// Audiences; a token has one of them. Required.
	Audience []string `json:"audience"`

	// The claim with the name of the Leader. Default: sub.
	LeaderClaim string `json:"leader_claim,omitempty"`

	// Scopes; a token has all of them. Default: none.
	Scopes []string `json:"scopes,omitempty"`

	TokenVerification
}

// Keys says where the keys are that callers may send. The Leader is key:<name>.
type Keys struct {
	// The file with the names and hashes of keys, from `caddy aip key`, with mode 0600.
	File string `json:"file"`

	// Their header. Default: Authorization, as a bearer token.
	Header string `json:"header,omitempty"`
}

// The words for proofs in accept.
var proofsByName = map[string]identity.Proof{
	"mtls":               identity.ByCertificate,
	"client_cert_header": identity.ByProxy,
	"jwt":                identity.ByToken,
	"keys":               identity.ByKey,
}

// defaultAccept are the dialects whose callers need a certificate: AIP demands mutual TLS.
var defaultAccept = map[string][]string{"aip": {"mtls", "client_cert_header"}, "aip/2": {"mtls", "client_cert_header"}}

// UnmarshalJSON reads the settings, or the mode alone.
func (i *Identity) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &i.Mode)
	}
	type plain Identity
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(i))
}

// MarshalJSON writes the mode alone where there is nothing else.
func (i Identity) MarshalJSON() ([]byte, error) {
	if i.modeAlone() {
		return json.Marshal(i.Mode)
	}
	type plain Identity
	return json.Marshal(plain(i))
}

// IsZero says that the settings are left out of JSON.
func (i Identity) IsZero() bool { return i.Mode == "" && i.modeAlone() }

func (i *Identity) modeAlone() bool { return !i.MTLS && !i.Others() && len(i.Accept) == 0 }

// Others reports whether there is another proof than the client certificate of the connection.
func (i *Identity) Others() bool { return i.ClientCertHeader != nil || len(i.JWT) > 0 || i.Keys != nil }

// Proofs returns how callers are judged, in a form to be compared: everything but what comes of it. aac says that
// tokens beside certificates are judged elsewhere.
func (i *Identity) Proofs(aac bool) string {
	same := *i
	same.Mode, same.Accept = "", nil
	text, _ := json.Marshal(same) // of texts
	return fmt.Sprintf("%s, aac %t", text, aac)
}

// has reports whether a proof is configured, by its word.
func (i *Identity) has(proof string) bool {
	switch proof {
	case "mtls":
		return i.MTLS
	case "client_cert_header":
		return i.ClientCertHeader != nil
	case "jwt":
		return len(i.JWT) > 0
	default:
		return i.Keys != nil
	}
}

// FillDefaults sets what is not set.
func (i *Identity) FillDefaults() {
	conf.OrDefault(&i.Mode, string(identity.Required))
	i.MTLS = i.MTLS || !i.Others() && i.Mode != string(identity.Off)
}

// Check returns what is wrong with the settings.
func (i *Identity) Check() error {
	if _, err := identity.ParseMode(i.Mode); err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if i.Mode == string(identity.Off) && (i.Others() || i.MTLS) {
		return errors.New("identity: off believes every senderId, and looks at no proof; take the proofs out of its block, " +
			"or set required or optional")
	}
	for dialect, proofs := range i.Accept {
		if !slices.ContainsFunc(gateway.CallerDialects(), func(name string) bool { return belongs(name, dialect) }) {
			return fmt.Errorf("identity: accept: there is no dialect %q", dialect)
		}
		for _, p := range proofs {
			if _, ok := proofsByName[p]; !ok {
				return fmt.Errorf("identity: accept %s: %q is no proof; use mtls, client_cert_header, jwt or keys", dialect, p)
			}
		}
	}
	for n := range i.JWT {
		if err := i.JWT[n].Check(); err != nil {
			return fmt.Errorf("identity: jwt: %w", err)
		}
	}
	if k := i.Keys; k != nil && k.Header != "" && (!isOwnHeader(k.Header) ||
		i.ClientCertHeader != nil && strings.EqualFold(k.Header, i.ClientCertHeader.Header)) {
		return errors.New("identity: keys: header needs the name of a header of its own, such as X-Api-Key; without it, " +
			"keys come in Authorization")
	}
	if h := i.ClientCertHeader; h != nil {
		switch {
		case !isOwnHeader(h.Header):
			return errors.New("identity: client_cert_header needs the name of a header of its own, such as Client-Cert")
		case !slices.Contains(authn.Forms, authn.Form(h.Form)):
			return fmt.Errorf("identity: client_cert_header: %q is no form; use rfc9440, xfcc or pem", h.Form)
		case len(h.From) == 0:
			return errors.New("identity: client_cert_header needs from and the addresses of the proxy: the header of others " +
				"is not believed")
		case len(h.TrustPool) == 0:
			return errors.New("identity: client_cert_header needs trust_pool and a file with the roots of the certificates")
		}
	}
	return nil
}

// Authorization is the header field of bearer tokens.
const Authorization = "Authorization"

// isOwnHeader reports whether a text is the name of a header field, and not that of the one for bearer tokens.
func isOwnHeader(name string) bool {
	return httpguts.ValidHeaderFieldName(name) && !strings.EqualFold(name, Authorization)
}

// belongs reports whether a dialect is one that a name in accept means.
func belongs(dialect, name string) bool {
	return dialect == name || strings.HasPrefix(dialect, name+"-") || name == "a2a" && strings.HasPrefix(dialect, "a2a/")
}

// Accepts returns the proofs that the callers of a dialect may have, by the words of the configuration.
func (i *Identity) Accepts(dialect string) []string {
	for _, table := range []map[string][]string{i.Accept, defaultAccept} {
		if proofs, ok := table[dialect]; ok {
			return proofs
		}
		for name, proofs := range table {
			if name != "a2a" && belongs(dialect, name) {
				return proofs
			}
		}
		if proofs, ok := table["a2a"]; ok && belongs(dialect, "a2a") {
			return proofs
		}
	}
	return []string{"mtls", "client_cert_header", "jwt", "keys"}
}

// Guard returns the Guard of callers of some dialects.
func (i *Identity) Guard(callers []translate.Server, allow []identity.AIC) *identity.Guard {
	g := &identity.Guard{Mode: identity.Mode(i.Mode), Allow: allow}
	if !i.Others() && len(i.Accept) == 0 {
		return g
	}
	g.Proofs = make(map[string][]identity.Proof)
	for _, c := range callers {
		var proofs []identity.Proof
		for _, name := range i.taken(c.Name()) {
			proofs = append(proofs, proofsByName[name])
		}
		g.Proofs[c.Name()] = proofs
	}
	return g
}

// taken returns the proofs that callers of a dialect may have, of those that are configured.
func (i *Identity) taken(dialect string) (proofs []string) {
	for _, name := range i.Accepts(dialect) {
		if i.has(name) {
			proofs = append(proofs, name)
		}
	}
	return proofs
}

// Schemes returns by what callers must prove who they are, for the cards, by the name of their dialect.
func (i *Identity) Schemes(callers []translate.Server) map[string]a2a.Schemes {
	all := make(map[string]a2a.Schemes)
	for _, c := range callers {
		if i.Mode == string(identity.Required) {
			all[c.Name()] = i.schemesIn(c.Name())
		}
	}
	return all
}

func (i *Identity) schemesIn(dialect string) (s a2a.Schemes) {
	for _, name := range i.taken(dialect) {
		switch {
		case name == "mtls", name == "client_cert_header":
			s.MutualTLS = true
		case name == "keys" && i.Keys.Header != "":
			s.KeyHeader = i.Keys.Header
		case name == "keys":
			s.Bearer = true
		default:
			for _, j := range i.JWT {
				if j.JWKS == "" {
					s.OpenID = append(s.OpenID, strings.TrimSuffix(j.Issuer, "/")+"/.well-known/openid-configuration")
				} else {
					s.Bearer = true
				}
			}
		}
	}
	return s
}

// Challenges returns what callers of some dialects are asked for who have no proof, by the name of the dialect.
func (i *Identity) Challenges(callers []translate.Server) map[string]httpfront.Challenges {
	all := make(map[string]httpfront.Challenges)
	for _, caller := range callers {
		var c httpfront.Challenges
		for _, name := range i.taken(caller.Name()) {
			switch {
			case name == "mtls", name == "client_cert_header":
				c.Certificate = true
			case name == "keys" && i.Keys.Header != "":
				c.KeyHeader = i.Keys.Header
			default:
				c.Bearer = true
			}
		}
		all[caller.Name()] = c
	}
	return all
}
