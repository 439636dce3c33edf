// SPDX-License-Identifier: Apache-2.0

package identity

import "time"

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
