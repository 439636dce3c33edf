// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Directive is a handler that a directive makes.
type Directive interface {
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler
}

// Handler reads a directive.
func Handler[T any, H interface {
	*T
	Directive
}](h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	m := H(new(T))
	return m, m.UnmarshalCaddyfile(h.Dispenser)
}
