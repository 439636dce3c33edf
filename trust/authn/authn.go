// SPDX-License-Identifier: Apache-2.0

package authn

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/fewlines"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// Authenticator finds out the caller. The zero value knows no proofs. It may be used by any number of goroutines at
// once.
type Authenticator struct {
	// Certificates accepts the client certificate of the connection as a proof.
	Certificates bool

	Proxy  *Proxy   // nil for none
	Keys   *Keys    // nil for none
	Tokens []*Token // of one issuer each

	// BesideCertificate leaves the bearer token beside a caller's certificate to others than this package.
	BesideCertificate bool

	Log *slog.Logger // of refused tokens and certificates

	lines fewlines.Limit
}

// Token selects the tokens of an issuer accepted as proofs of their bearers' identities.
type Token struct {
	Verifier *token.Verifier
	Claim    string   // its value names the Leader; empty for sub
	Scopes   []string // all required in the token
}

// Authenticate returns the caller. An error is a *task.Error of kind AuthenticationRequired, and has one of the causes
// ErrMalformed, ErrInvalid and a *ScopeError of package identity. It may wait for the keys of an issuer. The header of
// the proxy is removed from the request.
func (a *Authenticator) Authenticate(r *http.Request) (identity.Peer, error) {
	peer, err := a.byCertificate(r)
	if err != nil || peer.Refusal() != nil || a.BesideCertificate && peer.Verified() {
		return peer, err
	}
	second, err := a.inRequest(r)
	switch {
	case err != nil:
		return identity.Peer{CommonName: peer.CommonName}, err
	case peer.Verified():
		peer.Claims = second.Claims
		return peer, nil
	case second.Verified():
		return second, nil
	}
	return peer, nil
}

// Forget removes from a request the header meant for this package alone, for the handlers after the gateway.
func (a *Authenticator) Forget(r *http.Request) {
	if a != nil && a.Proxy != nil {
		a.Proxy.forget(r)
	}
}

// Close ends the fetches of the keys of issuers.
func (a *Authenticator) Close() {
	for _, t := range a.Tokens {
		t.Verifier.Close()
	}
}

// byCertificate returns the peer proven by a certificate.
func (a *Authenticator) byCertificate(r *http.Request) (identity.Peer, error) {
	defer a.Forget(r)
	switch {
	case a.Proxy != nil && a.Proxy.sent(r):
	case a.Certificates:
		return identity.OfConnection(r.TLS), nil
	default:
		return identity.Peer{}, nil
	}
	peer, err := a.Proxy.peer(r)
	if err != nil {
		a.refused("a certificate that a proxy has handed on was refused", r, err)
		return identity.Peer{}, invalid("The client certificate that the proxy has handed on is not accepted.")
	}
	return peer, nil
}

// inRequest returns the peer proven by a token or a key in the request; the zero Peer for none.
func (a *Authenticator) inRequest(r *http.Request) (identity.Peer, error) {
	if a.Keys == nil && len(a.Tokens) == 0 {
		return identity.Peer{}, nil
	}
	key := ""
	if a.Keys != nil && a.Keys.header != "" {
		keys := r.Header.Values(a.Keys.header)
		if len(keys) > 1 {
			return identity.Peer{}, malformed("There is more than one header field " + a.Keys.header + "; send one.")
		}
		key = strings.Join(keys, "")
	}
	bearer, err := bearerOf(r)
	if err != nil {
		return identity.Peer{}, err
	}
	if a.Keys != nil && a.Keys.header == "" && strings.HasPrefix(bearer, KeyPrefix) {
		key, bearer = bearer, ""
	}
	switch {
	case key != "" && bearer != "" && len(a.Tokens) > 0:
		return identity.Peer{}, malformed("There is a key and a token; send one of them.")
	case key != "":
		return a.Keys.peer(key)
	case bearer != "" && len(a.Tokens) > 0:
		return a.byToken(r, bearer)
	case bearer != "":
		return identity.Peer{}, invalid("The bearer token is no key of this gateway.")
	}
	return identity.Peer{}, nil
}

// Issues reports whether a peer of a kind could prove its id now: a key with its name is there, or the issuer of its
// tokens is trusted. Other kinds of ids are not for this package.
func (a *Authenticator) Issues(kind identity.Kind, id string) bool {
	switch kind {
	case identity.KeyKind:
		return a.Keys != nil && a.Keys.has(id)
	case identity.JWTKind:
		issuer, _, _ := strings.Cut(id, "|")
		return slices.ContainsFunc(a.Tokens, func(t *Token) bool { return t.Verifier.Issuer() == issuer })
	}
	return true
}

// bearerOf returns the bearer token of a request; empty for none. An error means an invalid form. The scheme alone,
// sent by web interfaces without a token, proves nothing, as if it were left out.
func bearerOf(r *http.Request) (string, error) {
	bearer, n := token.Bearer(r.Header["Authorization"])
	switch {
	case n > 1:
		return "", malformed("There is more than one bearer token; send one.")
	case strings.ContainsAny(bearer, " \t,"):
		return "", malformed("The header field Authorization has no valid form; send it as Bearer and one token.")
	}
	return bearer, nil
}

// byToken returns the peer proven by a token.
func (a *Authenticator) byToken(r *http.Request, bearer string) (identity.Peer, error) {
	var first error
	for _, t := range a.Tokens {
		claims, err := t.Verifier.Verify(r.Context(), bearer)
		if err == nil {
			return t.peer(claims)
		}
		// The error of the token's own issuer says more than an error of others.
		if other, ok := errors.AsType[*token.Error](err); first == nil || !ok || other.Reason != token.Issuer {
			first = err
		}
	}
	a.refused("a token was refused", r, first)
	if e, ok := errors.AsType[*token.Error](first); ok && e.Reason == token.Malformed {
		return identity.Peer{}, invalid("The bearer token is no JSON Web Token that can be read.")
	}
	return identity.Peer{}, invalid("The bearer token is not accepted.")
}

// peer returns the peer named by the claims of a verified token.
func (t *Token) peer(c *identity.Claims) (identity.Peer, error) {
	subject := c.Subject
	if t.Claim != "" {
		subject = ""
		if claim := jsonrpc.Member(gjson.Parse(c.JSON), t.Claim); claim.Type == gjson.String {
			subject = claim.Str
		}
	}
	if identity.CheckSubject(subject) != nil {
		return identity.Peer{}, invalid("The bearer token does not say who its bearer is.")
	}
	for _, scope := range t.Scopes {
		if !c.HasScope(scope) {
			return identity.Peer{}, task.Errorf(task.AuthenticationRequired, "The bearer token lacks a scope.").
				WithCause(&identity.ScopeError{Needed: t.Scopes})
		}
	}
	return identity.Peer{Proof: identity.ByToken, Kind: identity.JWTKind, ID: c.Issuer + "|" + subject, Expires: c.Expires,
		Claims: c}, nil
}

func (a *Authenticator) refused(what string, r *http.Request, err error) {
	if a.Log == nil {
		return
	}
	if may, unlogged := a.lines.Log(); may {
		a.Log.InfoContext(r.Context(), what, "address", r.RemoteAddr, "error", err, "unlogged", unlogged)
	}
}

func malformed(why string) error {
	return task.Errorf(task.AuthenticationRequired, "%s", why).WithCause(identity.ErrMalformed)
}

func invalid(why string) error {
	return task.Errorf(task.AuthenticationRequired, "%s", why).WithCause(identity.ErrInvalid)
}
