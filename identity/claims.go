// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Claims are the content of a verified token. They are shared by all holders of the token, and must not be changed.
type Claims struct {
	Issuer   string   // iss
	Subject  string   // sub: at most 255 bytes without control characters; empty for none
	Audience []string // aud
	Scopes   []string // scope, and scp
	ID       string   // jti; empty for none

	Issued time.Time // iat; zero for none
	// Expires is the last moment of the token's acceptance: exp and the leeway of its verifier.
	Expires time.Time

	// JSON is the object of all claims, as it stands in the token. It was read strictly: no name is there twice in any
	// object of it.
	JSON string
}

// HasScope reports whether the token has a scope.
func (c *Claims) HasScope(scope string) bool { return slices.Contains(c.Scopes, scope) }

// maxSubject is the length of the name of a token's bearer, at most, in bytes.
const maxSubject = 255

// CheckSubject returns the fault in a name for the bearer of a token, such as the claim sub.
func CheckSubject(s string) error {
	switch {
	case s == "":
		return errors.New("the subject is empty")
	case len(s) > maxSubject:
		return fmt.Errorf("the subject has %d bytes, and at most %d are allowed", len(s), maxSubject)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("the subject has a control character, or is not in UTF-8")
	}
	return nil
}
