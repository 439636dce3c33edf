// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// The default lives of tokens.
const (
	defaultAccessLife  = time.Hour
	defaultRefreshLife = 7 * 24 * time.Hour
)

// AuthorityConfig configures an Authority. Identity and Roots are required.
type AuthorityConfig struct {
	Identity *Identity // signs nonces, and the key of the tokens is derived from it; it has a certificate
	Roots    *Roots    // of the AIDs allowed to log in

	Issuer string // its tokens are those of auth.{Issuer}. Default: the issuer of Identity
	// ForeignKeys are the keys of the accepted authentication services for tokens, each by its issuer: a key signs for
	// AIDs of its issuer, and for no others. The key of Identity is not one of them: tokens signed by it may be forged.
	ForeignKeys map[string][]*ecdsa.PublicKey
	AccessLife  time.Duration // default: 1 h
	RefreshLife time.Duration // default: 7 days
}

// Authority is the server side of the logins: it checks the identity of a client, and issues tokens. Its state belongs
// to no connection. Its methods may be called by any number of goroutines at once; each takes the params of a request,
// and returns the JSON of its result or an *Error.
type Authority struct {
	config AuthorityConfig
	logins logins
	tokens tokens

	elsewhere atomic.Pointer[func(nonce string) *Begun] // see Share; nil for none
}

// Begun is a login between its two steps, as it is handed to the process receiving its second step.
type Begun struct {
	AID     AID
	Request string // the id of the login
	Expires time.Time
	Chain   [][]byte // the certificates of the AID, in DER
}

// Share has logins finished here after their first step at another process. elsewhere returns the login of a nonce,
// once; nil for none.
func (a *Authority) Share(elsewhere func(nonce string) *Begun) { a.elsewhere.Store(&elsewhere) }

// Take removes the login of a nonce, and returns it, for another process to finish it; nil for none.
func (a *Authority) Take(nonce string) *Begun {
	in := a.logins.take(nonce)
	if in == nil {
		return nil
	}
	b := &Begun{AID: in.aid, Request: in.request, Expires: in.expires}
	for _, cert := range in.cert.chain {
		b.Chain = append(b.Chain, cert.Raw)
	}
	return b
}

// taken returns a login begun by another process; nil for none. Its certificates are verified here, too.
func (a *Authority) taken(nonce string, b *Begun) (*login, error) {
	if b == nil {
		return nil, nil
	}
	cert, err := a.config.Roots.verifyDER(b.AID, b.Chain)
	return &login{aid: b.AID, request: b.Request, nonce: nonce, cert: cert, expires: b.Expires}, err
}

// NewAuthority returns an authority.
func NewAuthority(config AuthorityConfig) (*Authority, error) {
	if len(config.Identity.Chain) == 0 {
		return nil, errors.New("the identity has no certificate")
	}
	if config.Issuer == "" {
		config.Issuer = config.Identity.AID.Issuer()
	}
	if config.AccessLife <= 0 {
		config.AccessLife = defaultAccessLife
	}
	if config.RefreshLife <= 0 {
		config.RefreshLife = defaultRefreshLife
	}
	for issuer, keys := range config.ForeignKeys {
		if slices.ContainsFunc(keys, func(key *ecdsa.PublicKey) bool { return key.Equal(&config.Identity.Key.PublicKey) }) {
			return nil, fmt.Errorf("a key of the issuer %s is that of this gateway's own AID, which signs no tokens; "+
				"leave it out of jwt_key", issuer)
		}
	}
	key, err := config.Identity.TokenKey()
	if err != nil {
		return nil, err
	}
	return &Authority{config: config, tokens: tokens{
		issuer: "auth." + config.Issuer, key: key, foreign: config.ForeignKeys, kid: keyID(&key.PublicKey),
	}}, nil
}

// NewChallenge returns the nonce of a new connection in gateway mode, and the params of its notification "challenge",
// the connection's first frame.
func (a *Authority) NewChallenge() (nonce string, params []byte) {
	nonce = NewNonce()
	return nonce, mustJSON(map[string]any{
		"nonce": nonce, "server": a.config.Identity.AID,
		"protocol":     map[string]string{"min": Version, "max": Version},
		"auth_methods": []string{"aid", "kite_token"},
		"capabilities": map[string]any{}, "server_time": time.Now().UnixMilli(),
	})
}

// Login1 is auth.aid_login1: the client presents its certificate, and gets a nonce to sign.
func (a *Authority) Login1(params gjson.Result) ([]byte, error) {
	aid, err := a.config.Identity.clientAID(params)
	if err != nil {
		return nil, err
	}
	clientNonce, request := params.Get("client_nonce").String(), params.Get("request_id").String()
	switch {
	case !asksService(clientNonce):
		return nil, badNonce("client_nonce")
	case len(request) > maxParam:
		return nil, Errorf(codes.InvalidParams, "request_id is longer than %d bytes", maxParam)
	case request == "":
		request = NewNonce()
	}
	chain, err := ParseChain(params.Get("cert").String())
	if err != nil {
		return nil, err
	}
	cert, err := a.config.Roots.Verify(aid, chain)
	if err != nil {
		return nil, err
	}
	signature, err := a.config.Identity.Sign(clientNonce)
	if err != nil {
		return nil, err
	}
	in := login{aid: aid, request: request, nonce: NewNonce(), cert: cert}
	a.logins.begin(in)
	return mustJSON(map[string]any{
		"success": true, "request_id": request, "nonce": in.nonce, "server_time": time.Now().UnixMilli(),
		"client_nonce_signature": signature, "auth_cert": a.config.Identity.CertPEM(),
		"auth_curve": a.config.Identity.Curve(),
	}), nil
}

// Login2 is auth.aid_login2: the client presents the signed nonce, and gets tokens. It need not present its certificate
// again.
func (a *Authority) Login2(params gjson.Result) ([]byte, error) {
	cert, err := a.finish(params)
	if err != nil {
		return nil, err
	}
	result, _, err := a.issue(cert, NewNonce())
	return result, err
}

// finish checks the second step of a login.
func (a *Authority) finish(params gjson.Result) (*Certificate, error) {
	aid, err := a.config.Identity.clientAID(params)
	if err != nil {
		return nil, err
	}
	nonce := params.Get("nonce").String()
	in := a.logins.take(nonce)
	if elsewhere := a.elsewhere.Load(); in == nil && elsewhere != nil && isNonce(nonce) {
		if in, err = a.taken(nonce, (*elsewhere)(nonce)); err != nil {
			return nil, err
		}
	}
	if err := in.check(aid, params.Get("request_id").String()); err != nil {
		return nil, err
	}
	// The time is signed as the client has written it.
	message := in.nonce + ":" + params.Get("client_time").String()
	if t := params.Get("client_time"); t.Type == gjson.Number {
		message = in.nonce + ":" + t.Raw
	}
	return in.cert, Verify(in.cert.Key, message, params.Get("signature").String())
}

// issue returns new tokens for the AID of a logged-in certificate, and their Proof.
func (a *Authority) issue(cert *Certificate, login string) ([]byte, Proof, error) {
	now := time.Now()
	until := func(life time.Duration) time.Time {
		if t := now.Add(life); t.Before(cert.NotAfter) {
			return t
		}
		return cert.NotAfter
	}
	expires := until(a.config.AccessLife)
	access, err := a.tokens.issue(cert, login, accessAudience, expires)
	if err != nil {
		return nil, Proof{}, err
	}
	refresh, err := a.tokens.issue(cert, login, refreshAudience, until(a.config.RefreshLife))
	if err != nil {
		return nil, Proof{}, err
	}
	return mustJSON(map[string]any{
		"success": true, "aid": cert.AID, "access_token": access, "token": access, "refresh_token": refresh,
		"expires_in": int64(expires.Sub(now) / time.Second),
	}), Proof{AID: cert.AID, Expires: expires, login: login, cert: cert}, nil
}

// Refresh is auth.refresh_token. For an expired or invalid token, the result asks for a login, as clients expect. The
// Proof of the new tokens is also returned; it is the zero Proof if there are none.
func (a *Authority) Refresh(params gjson.Result) ([]byte, Proof, error) {
	c, err := a.tokens.check(params.Get("refresh_token").String(), refreshAudience)
	if err == nil && c.AID != a.config.Identity.AID {
		if aid := params.Get("aid"); !aid.Exists() || aid.String() == string(c.AID) {
			if cert, err := c.certificate(a.config.Roots); err == nil {
				return a.issue(cert, c.Login)
			}
		}
	}
	return mustJSON(map[string]any{
		"success": false, "error": "The refresh token is not valid", "relogin_required": true, "retryable": false,
	}), Proof{}, nil
}

// Authenticate checks the member auth of auth.connect.
func (a *Authority) Authenticate(auth gjson.Result) (Proof, error) {
	switch method := auth.Get("method").String(); method {
	case "kite_token":
		c, err := a.tokens.check(auth.Get("token").String(), accessAudience)
		if err != nil {
			return Proof{}, err
		}
		if err := a.config.Identity.refuse(c.AID); err != nil {
			return Proof{}, err
		}
		p := Proof{AID: c.AID, Expires: c.Expiry.Time().Add(leeway), login: c.Login, signer: c.signer}
		if c.signer == nil {
			p.cert, err = c.certificate(a.config.Roots)
		}
		return p, err
	case "aid":
		cert, err := a.finish(auth)
		if err != nil {
			return Proof{}, err
		}
		return cert.proof(), nil
	}
	return Proof{}, Errorf(codes.AuthFailed, "The authentication method is not supported; use aid or kite_token")
}

// maxParam is the length of the longest accepted id, in bytes.
const maxParam = 256

// mustJSON returns the JSON of a value made of JSON's own types.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
