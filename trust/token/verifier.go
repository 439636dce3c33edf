// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/go-jose/go-jose/v4"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// MaxSize is the size of the largest token that is read, in bytes.
const MaxSize = 16 << 10

// DefaultLeeway is the default of Config.Leeway.
const DefaultLeeway = time.Minute

// Algorithms are the algorithms that may be allowed.
var Algorithms = []string{string(jose.RS256), string(jose.PS256), string(jose.ES256), string(jose.EdDSA)}

// Config says which tokens are accepted.
type Config struct {
	// Issuer is what the claim iss must be, byte for byte. It holds no "|", which ends it in the name of a Leader.
	Issuer string
	// JWKS is the URL of the keys of the issuer. Default: what its OpenID configuration says (OpenID Connect
	// Discovery 1.0); then Issuer is a URL.
	JWKS string
	// Audiences are those of which one must be in the claim aud. At least one is required.
	Audiences []string
	// Algorithms are the allowed ones; default: those of the variable Algorithms.
	Algorithms []string
	// Leeway is by how much the clocks of the issuer and of the gateway may differ; default: DefaultLeeway. Negative
	// for none.
	Leeway time.Duration

	// Egress says which addresses keys are fetched from.
	Egress egress.Policy
	// Roots verify the servers that keys are fetched from; default: those of the system.
	Roots *x509.CertPool
	// Keys are shared by verifiers, so that a new configuration has the keys of the old one. Default: a verifier has
	// keys of its own.
	Keys *Keys

	Log *slog.Logger // of fetches of keys; default: none
}

// check returns what is wrong with a configuration.
func (c *Config) check() error {
	switch {
	case c.Issuer == "":
		return errors.New("the issuer of tokens is missing")
	case strings.Contains(c.Issuer, "|"):
		return fmt.Errorf("the issuer %q holds a bar, and names of Leaders end an issuer with it", c.Issuer)
	case strings.ContainsFunc(c.Issuer, unicode.IsControl):
		return fmt.Errorf("the issuer %q has a control character", c.Issuer)
	case len(c.Audiences) == 0:
		return fmt.Errorf("the audience of tokens of %s is missing: without it, tokens for others would be accepted",
			c.Issuer)
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(Algorithms, a) {
			return fmt.Errorf("the algorithm %q is not supported; use %s", a, strings.Join(Algorithms, ", "))
		}
	}
	what, url := "the URL of the keys", c.JWKS
	if url == "" {
		what, url = "the issuer, whose OpenID configuration says where its keys are,", c.Issuer
	}
	if _, err := c.Egress.CheckURL(url); err != nil {
		refused, _ := errors.AsType[*egress.RefusedError](err)
		return fmt.Errorf("%s cannot be used: %s: %s", what, url, refused.Reason)
	}
	return nil
}

// Verifier verifies the tokens of one issuer. It may be used by any number of goroutines at once.
type Verifier struct {
	config     Config
	algorithms []jose.SignatureAlgorithm
	leeway     time.Duration
	keys       *source
	verified   [1024]atomic.Pointer[verified]
}

// verified is a token that was verified. Each place holds one: a collision means that a token is verified again. Only
// verified tokens are kept, so that strangers cannot evict others.
type verified struct {
	sum    [sha256.Size]byte // of the token
	keys   *keySet           // has verified it
	claims *identity.Claims
	times  times
}

// maxRemembered is the size of the largest token that is remembered, in bytes.
const maxRemembered = 4 << 10

// New returns a Verifier. It fetches nothing.
func New(c Config) (*Verifier, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Keys == nil {
		c.Keys = new(Keys)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	v := &Verifier{config: c, leeway: max(cmp.Or(c.Leeway, DefaultLeeway), 0)}
	allowed := c.Algorithms
	if len(allowed) == 0 {
		allowed = Algorithms
	}
	for _, a := range allowed {
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(a))
	}
	v.keys = c.Keys.open(&c)
	return v, nil
}

// Issuer returns the issuer whose tokens are verified.
func (v *Verifier) Issuer() string { return v.config.Issuer }

// Algorithms returns the algorithms that are allowed.
func (v *Verifier) Algorithms() (names []string) {
	for _, a := range v.algorithms {
		names = append(names, string(a))
	}
	return names
}

// Health returns what is known of the keys of the issuer.
func (v *Verifier) Health() Health { return v.keys.health(v.config.Issuer, v.algorithms) }

// Fetch fetches the keys of the issuer, if they are not known, and returns what is known then.
func (v *Verifier) Fetch(ctx context.Context) Health {
	if v.keys.current() == nil {
		_, _, _ = v.keys.find(ctx, "", "") // Health has the error
	}
	return v.Health()
}

// Close ends fetches, unless another Verifier shares the keys.
func (v *Verifier) Close() { v.config.Keys.close(v.keys) }

// Verify returns what a token says. It may wait until keys are fetched, but not longer than ctx. Every error is an
// *Error, or that of ctx.
func (v *Verifier) Verify(ctx context.Context, token string) (*identity.Claims, error) {
	if len(token) > MaxSize {
		return nil, refuse(Malformed, fmt.Sprintf("it has %d bytes, and at most %d are read", len(token), MaxSize))
	}
	var buf [maxRemembered]byte // the text is copied to the stack
	sum := sha256.Sum256(append(buf[:0], token...))
	place := &v.verified[binary.LittleEndian.Uint32(sum[:])%uint32(len(v.verified))]
	known, keys := place.Load(), v.keys.current()
	if known == nil || known.sum != sum || known.keys != keys {
		var err error
		if known, err = v.verify(ctx, token); err != nil {
			return nil, err
		}
		if known.sum = sum; len(token) <= maxRemembered {
			place.Store(known)
		}
	}
	if err := known.times.check(time.Now(), v.leeway); err != nil {
		err.ID, err.Subject = known.claims.ID, known.claims.Subject
		return nil, err
	}
	return known.claims, nil
}

// verify is Verify without what is remembered, and without a look at the clock.
func (v *Verifier) verify(ctx context.Context, token string) (*verified, error) {
	read, refused := readToken(token)
	switch {
	case refused != nil:
		return nil, refused
	case !slices.Contains(v.algorithms, jose.SignatureAlgorithm(read.algorithm)):
		return nil, refuse(Algorithm, fmt.Sprintf("it is %.20q", read.algorithm))
	case read.claims.Issuer != v.config.Issuer:
		return nil, refuse(Issuer, fmt.Sprintf("it is %.200q", read.claims.Issuer))
	}
	keys, candidates, err := v.keys.find(ctx, read.kid, read.algorithm)
	if err != nil {
		return nil, err
	}
	signed, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		return nil, &Error{Reason: Malformed, Err: err}
	}
	if !slices.ContainsFunc(candidates, func(key any) bool {
		_, err := signed.Verify(key)
		return err == nil
	}) {
		return nil, refuse(Signature, "")
	}
	c := &read.claims
	if !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(v.config.Audiences, a) }) {
		return nil, &Error{Reason: Audience, Detail: fmt.Sprintf("it is %.200q", c.Audience), ID: c.ID, Subject: c.Subject}
	}
	c.Expires = read.times.expires.Add(v.leeway)
	return &verified{keys: keys, claims: c, times: read.times}, nil
}

// Verifiers verify the tokens of several issuers.
type Verifiers []*Verifier

// Verify is that of the first verifier that accepts the token. The error is that of one for the issuer of the token, if
// there is one.
func (all Verifiers) Verify(ctx context.Context, token string) (*identity.Claims, error) {
	if len(all) == 0 {
		return nil, refuse(Issuer, "no issuer is configured")
	}
	var first error
	for i, v := range all {
		claims, err := v.Verify(ctx, token)
		if err == nil {
			return claims, nil
		}
		was, _ := errors.AsType[*Error](first)
		if i == 0 || was != nil && was.Reason == Issuer {
			first = err
		}
	}
	return nil, first
}

// Close closes all.
func (all Verifiers) Close() {
	for _, v := range all {
		v.Close()
	}
}
