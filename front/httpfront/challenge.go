// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"errors"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
)

// Challenges are the credentials by which callers may prove their identities (RFC 9110, §11.6.1). The zero value asks
// for nothing.
type Challenges struct {
	Bearer      bool   // a token, or a key sent as one
	KeyHeader   string // the header of keys; empty for none
	Certificate bool   // a client certificate, to the gateway or to a proxy in front of it
}

// The names of schemes unknown to HTTP. A challenge by them is for people: no client answers it by itself.
const (
	certificateScheme = "AIP-Certificate"
	keyScheme         = "AIP-Key"
)

// challenge returns the fields WWW-Authenticate for a refusal in its dialect, and the corresponding status.
func (f *Front) challenge(a *gateway.Answer) (fields []string, status int) {
	var c Challenges
	if a.Dialect != nil {
		c = f.config.Challenges[a.Dialect.Name()]
	}
	return c.of(a.Err)
}

// of returns the fields WWW-Authenticate for an error, and the corresponding status (RFC 6750, §3.1).
func (c *Challenges) of(err error) (fields []string, status int) {
	status = http.StatusUnauthorized
	if c.Bearer {
		field := "Bearer"
		scope, lacks := errors.AsType[*identity.ScopeError](err)
		switch {
		case errors.Is(err, identity.ErrMalformed):
			field, status = `Bearer error="invalid_request"`, http.StatusBadRequest
		case lacks:
			field = `Bearer error="insufficient_scope", scope="` + strings.Join(scope.Needed, " ") + `"`
			status = http.StatusForbidden
		case errors.Is(err, identity.ErrInvalid):
			field = `Bearer error="invalid_token"`
		}
		fields = append(fields, field)
	} else if errors.Is(err, identity.ErrMalformed) {
		status = http.StatusBadRequest
	}
	if c.KeyHeader != "" {
		fields = append(fields, keyScheme+` header="`+c.KeyHeader+`"`)
	}
	if c.Certificate {
		fields = append(fields, certificateScheme)
	}
	return fields, status
}
