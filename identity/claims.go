// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Claims are what a verified token says. They are shared by all who have the token, and must not be changed.
type Claims struct {
	Issuer   string   // iss
	Subject  string   // sub: at most 255 bytes without control characters; empty for none
	Audience []string // aud
	Scopes   []string // scope, and scp
	ID       string   // jti; empty for none

	Issued time.Time // iat; zero for none
	// Expires is the last moment at which the token is accepted: exp and the leeway of its verifier.
	Expires time.Time

	// JSON is the object of all claims, as it stands in the token. It was read strictly: no name is there twice in any
	// object of it.
	JSON string
}

// HasScope reports whether the token has a scope.
func (c *Claims) HasScope(scope string) bool { return slices.Contains(c.Scopes, scope) }

// maxSubject is how long the name of a token's bearer may be, in bytes.
const maxSubject = 255

// ValidSubject reports whether a text can name the bearer of a token: it is neither empty nor longer than 255 bytes,
// and has no control characters.
func ValidSubject(s string) bool {
	return s != "" && len(s) <= maxSubject && utf8.ValidString(s) &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 })
}
