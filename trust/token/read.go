// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// Bounds of what a token holds. MaxSize bounds the rest.
const (
	maxDepth  = 32  // objects and arrays inside each other; the actors of a chain are
	maxKeyID  = 256 // bytes
	maxScopes = 256
)

// unverifiedToken is a token that was read, and not verified.
type unverifiedToken struct {
	algorithm, kid string
	claims         identity.Claims // without Expires
	times          times
}

// times are when a token is valid. Only expires is never zero.
type times struct{ expires, notBefore, issued time.Time }

// check returns an error if a token is not valid now.
func (t times) check(now time.Time, leeway time.Duration) *Error {
	early := func(claim string, at time.Time) *Error {
		return refuse(NotYetValid, fmt.Sprintf("%s is %s", claim, at.UTC().Format(time.RFC3339)))
	}
	switch {
	case !now.Before(t.expires.Add(leeway)):
		return refuse(Expired, "exp is "+t.expires.UTC().Format(time.RFC3339))
	case now.Before(t.notBefore.Add(-leeway)):
		return early("nbf", t.notBefore)
	case now.Before(t.issued.Add(-leeway)):
		return early("iat", t.issued)
	}
	return nil
}

// readToken reads a token in the compact form of JWS. It verifies nothing.
func readToken(token string) (*unverifiedToken, *Error) {
	header, rest, ok := strings.Cut(token, ".")
	payload, signature, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || strings.Contains(signature, ".") {
		return nil, refuse(Malformed, "it does not have three parts")
	}
	if signature == "" {
		return nil, refuse(Malformed, "it has no signature")
	}
	t := new(unverifiedToken)
	if err := t.readHeader(header); err != nil {
		return nil, err
	}
	if err := t.readClaims(payload); err != nil {
		return nil, err
	}
	return t, nil
}

// object decodes a part of a token, a JSON object.
func object(what, part string) (gjson.Result, *Error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return gjson.Result{}, refuse(Malformed, "its "+what+" is not in base64url")
	}
	o, bad := jsonrpc.ParseValue(raw, jsonrpc.Limits{Bytes: MaxSize, Depth: maxDepth})
	switch {
	case bad != nil:
		return o, &Error{Reason: Malformed, Detail: "its " + what + " cannot be read", Err: bad}
	case !o.IsObject():
		return o, refuse(Malformed, "its "+what+" is not an object")
	}
	return o, nil
}

func (t *unverifiedToken) readHeader(part string) *Error {
	header, err := object("header", part)
	if err != nil {
		return err
	}
	var bad *Error
	header.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "alg":
			t.algorithm, bad = text("alg", value, 20)
		case "kid":
			t.kid, bad = text("kid", value, maxKeyID)
		case "typ":
			var typ string
			typ, bad = text("typ", value, 100)
			switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
			case "jwt", "at+jwt":
			default: // of another kind, such as a logout token (RFC 8725 §3.11)
				if bad == nil {
					bad = refuse(Malformed, fmt.Sprintf("typ is %.40q, and must be JWT or at+jwt", typ))
				}
			}
		case "crit", "b64":
			bad = refuse(Malformed, "its header has "+name.Str+", and no extension of a header is known here")
		}
		return bad == nil
	})
	if bad == nil && t.algorithm == "" {
		bad = refuse(Malformed, "alg is missing")
	}
	return bad
}

func (t *unverifiedToken) readClaims(part string) *Error {
	claims, err := object("claims", part)
	if err != nil {
		return err
	}
	c := &t.claims
	c.JSON = claims.Raw
	var bad *Error
	claims.ForEach(func(name, value gjson.Result) bool {
		switch name.Str {
		case "iss":
			c.Issuer, bad = text("iss", value, MaxSize)
		case "sub":
			if c.Subject, bad = text("sub", value, MaxSize); bad == nil {
				if err := identity.CheckSubject(c.Subject); err != nil {
					bad = refuse(Malformed, err.Error())
				}
			}
		case "jti":
			c.ID, bad = text("jti", value, MaxSize)
		case "aud":
			c.Audience, bad = texts("aud", value)
		case "scope", "scp":
			var scopes []string
			if scopes, bad = texts(name.Str, value); value.Type == gjson.String {
				scopes = strings.Fields(value.Str)
			}
			if c.Scopes = append(c.Scopes, scopes...); len(c.Scopes) > maxScopes {
				bad = refuse(Malformed, fmt.Sprintf("it has more than %d scopes", maxScopes))
			}
		case "exp":
			t.times.expires, bad = moment("exp", value)
		case "nbf":
			t.times.notBefore, bad = moment("nbf", value)
		case "iat":
			t.times.issued, bad = moment("iat", value)
			c.Issued = t.times.issued
		}
		return bad == nil
	})
	if bad == nil && t.times.expires.IsZero() {
		bad = refuse(Malformed, "exp is missing: it would never expire")
	}
	return bad
}

// text returns a string of at most limit bytes.
func text(name string, v gjson.Result, limit int) (string, *Error) {
	switch {
	case v.Type != gjson.String:
		return "", refuse(Malformed, name+" is not a string")
	case len(v.Str) > limit:
		return "", refuse(Malformed, fmt.Sprintf("%s has %d bytes, and at most %d are allowed", name, len(v.Str), limit))
	}
	return v.Str, nil
}

// texts returns a string, or an array of strings.
func texts(name string, v gjson.Result) (all []string, bad *Error) {
	if !v.IsArray() {
		one, bad := text(name, v, MaxSize)
		return []string{one}, bad
	}
	v.ForEach(func(_, one gjson.Result) bool {
		var s string
		s, bad = text(name, one, MaxSize)
		all = append(all, s)
		return bad == nil
	})
	return all, bad
}

// lastMoment is the end of the year 9999, in seconds: what is beyond it is no time.
const lastMoment = 253402300799

// moment returns a time, in seconds since 1970, which may have a fraction.
func moment(name string, v gjson.Result) (time.Time, *Error) {
	if v.Type != gjson.Number || !(v.Num > 0 && v.Num <= lastMoment) {
		return time.Time{}, refuse(Malformed, name+" is not a time in seconds")
	}
	seconds, fraction := math.Modf(v.Num)
	return time.Unix(int64(seconds), int64(fraction*1e9)), nil
}
