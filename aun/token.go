// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
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

// leeway is the greatest difference between the clocks of a token's signer and its reader.
const leeway = time.Minute

// claims are the claims of a token of AUN.
type claims struct {
	jwt.Claims
	AID AID `json:"aid"`
	// Login is the login from which the token comes, over all refreshes, and Chain the certificates of this login, in
	// DER: the token is as good as they are. Tokens of other issuers have neither.
	Login string   `json:"sid,omitempty"`
	Chain [][]byte `json:"chain,omitempty"`

	signer *ecdsa.PublicKey // of another issuer; nil in a token of our own
}

// tokens issues and checks tokens: JSON Web Tokens with ES256, of other issuers also with ES384.
type tokens struct {
	issuer  string            // auth.{issuer}
	key     *ecdsa.PrivateKey // Identity.TokenKey; it signs nothing else
	kid     string
	foreign map[string][]*ecdsa.PublicKey // by the issuer
}

// keyID names a public key in its tokens.
func keyID(key *ecdsa.PublicKey) string {
	sum := sha256.Sum256(publicInfo(key))
	return hex.EncodeToString(sum[:8])
}

// issue returns a token for the AID of a certificate.
func (t *tokens) issue(cert *Certificate, login, audience string, expires time.Time) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: t.key},
		(&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", t.kid))
	if err != nil {
		return "", err
	}
	now := time.Now()
	c := claims{
		Claims: jwt.Claims{Issuer: t.issuer, Subject: string(cert.AID), Audience: jwt.Audience{audience}, ID: NewNonce(),
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(expires)},
		AID: cert.AID, Login: login,
	}
	for _, cert := range cert.chain {
		c.Chain = append(c.Chain, cert.Raw)
	}
	token, err := jwt.Signed(signer).Claims(c).Serialize()
	if err == nil && len(token) > maxToken {
		err = Errorf(codes.CertificateInvalid, "The chain of certificates is too long for a token; leave out the root")
	}
	return token, err
}

// maxToken is the size of the largest token, issued or read, in bytes. It must fit into a frame before a login.
const maxToken = 12 << 10

// check returns the claims of a token. Tokens of other issuers are accepted as access tokens.
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
	issuer := t.issuer
	if parsed.Claims(&t.key.PublicKey, c) != nil {
		if audience != accessAudience {
			return nil, invalid
		}
		if issuer, c = t.foreignClaims(parsed); c == nil {
			return nil, invalid
		}
	}
	if c.AID, err = ParseAID(string(c.AID)); err != nil || c.Expiry == nil {
		return nil, invalid
	}
	err = c.ValidateWithLeeway(jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{audience}, Time: time.Now()},
		leeway)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return nil, Errorf(codes.TokenExpired, "The token has expired")
	case err != nil:
		return nil, invalid
	}
	return c, nil
}

// certificate verifies the certificates of a token of our own by the roots as they are now.
func (c *claims) certificate(roots *Roots) (*Certificate, error) {
	return roots.verifyDER(c.AID, c.Chain)
}

// foreignClaims returns the claims of a token signed by another issuer, for an AID of its own; nil for any other token.
// It also returns the required value of the claim iss.
func (t *tokens) foreignClaims(parsed *jwt.JSONWebToken) (issuer string, _ *claims) {
	var said claims // its signer is not known yet
	if parsed.UnsafeClaimsWithoutVerification(&said) != nil {
		return "", nil
	}
	aid, err := ParseAID(string(said.AID))
	if err != nil {
		return "", nil
	}
	for _, key := range t.foreign[aid.Issuer()] {
		c := new(claims)
		if parsed.Claims(key, c) == nil {
			c.Chain, c.signer = nil, key
			return "auth." + aid.Issuer(), c
		}
	}
	return "", nil
}
