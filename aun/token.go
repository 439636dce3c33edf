// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// The audiences of tokens.
const (
	accessAudience  = "aun"
	refreshAudience = "aun-refresh"
)

// claims are the claims of a token of AUN.
type claims struct {
	jwt.Claims
	AID AID `json:"aid"`
	// NotAfter is when the certificate ends by which the AID has logged in. Only in refresh tokens.
	NotAfter *jwt.NumericDate `json:"cert_not_after,omitempty"`
}

// tokens issues and checks tokens: JSON Web Tokens with ES256 or ES384.
type tokens struct {
	issuer  string // auth.{issuer}
	key     *ecdsa.PrivateKey
	kid     string
	foreign []*ecdsa.PublicKey // of other issuers
}

func algorithm(curve elliptic.Curve) jose.SignatureAlgorithm {
	if curve == elliptic.P384() {
		return jose.ES384
	}
	return jose.ES256
}

// issue returns a token for an AID.
func (t *tokens) issue(aid AID, audience string, expires time.Time, notAfter *jwt.NumericDate) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm(t.key.Curve), Key: t.key},
		(&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", t.kid))
	if err != nil {
		return "", err
	}
	now := time.Now()
	return jwt.Signed(signer).Claims(claims{
		Claims: jwt.Claims{Issuer: t.issuer, Subject: string(aid), Audience: jwt.Audience{audience}, ID: NewNonce(),
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires)},
		AID: aid, NotAfter: notAfter,
	}).Serialize()
}

// maxToken is the size of the largest token that is read, in bytes.
const maxToken = 16 << 10

// check returns the claims of a token. Tokens of other issuers are accepted as access tokens, for AIDs of theirs.
func (t *tokens) check(token, audience string) (*claims, error) {
	invalid := Errorf(codes.AuthFailed, "The token is invalid")
	if len(token) > maxToken {
		return nil, invalid
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256, jose.ES384})
	if err != nil {
		return nil, invalid
	}
	c := new(claims)
	own := t.key != nil && parsed.Claims(&t.key.PublicKey, c) == nil
	if !own && !(audience == accessAudience && t.signedByOther(parsed, c)) {
		return nil, invalid
	}
	if c.AID, err = ParseAID(string(c.AID)); err != nil || c.Expiry == nil {
		return nil, invalid
	}
	issuer := t.issuer
	if !own {
		issuer = "auth." + c.AID.Issuer()
	}
	err = c.ValidateWithLeeway(jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{audience}, Time: time.Now()}, 0)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return nil, Errorf(codes.TokenExpired, "The token has expired")
	case err != nil:
		return nil, invalid
	}
	return c, nil
}

// signedByOther reports whether another issuer has signed a token, whose claims it reads.
func (t *tokens) signedByOther(parsed *jwt.JSONWebToken, c *claims) bool {
	for _, key := range t.foreign {
		if *c = (claims{}); parsed.Claims(key, c) == nil {
			return true
		}
	}
	return false
}
