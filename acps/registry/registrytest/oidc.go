// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// realm is the path of the provider of OpenID Connect.
const realm = "/realms/acps-registry"

// ClientID is the client known to the provider.
const ClientID = "registry-cli"

// provider is a provider of OpenID Connect, as registries of ACPs 2.2 have.
type provider struct {
	allowed bool // the person has logged in
	refused bool
	slow    bool // the next question comes too early
	asked   int  // the number of requests to a person to log in
	refresh string
}

// NewOIDC starts a registry with logins at a provider of OpenID Connect, like one of ACPs 2.2.
func NewOIDC(t testing.TB) *Registry {
	r := New(t)
	r.oidc = new(provider)
	return r
}

// Issuer returns the issuer's URL.
func (r *Registry) Issuer() string { return r.URL + realm }

// LogIn has the asked person log in, or refuse to.
func (r *Registry) LogIn(allowed bool) {
	r.do(func() { r.oidc.allowed, r.oidc.refused = allowed, !allowed })
}

// SlowDown has the provider refuse the next question for the login as too early.
func (r *Registry) SlowDown() { r.do(func() { r.oidc.slow = true }) }

// EndSession has the provider forget the session.
func (r *Registry) EndSession() { r.do(func() { r.oidc.refresh, r.token = "ended", "" }) }

// Asked returns the number of requests to a person to log in.
func (r *Registry) Asked() (n int) { r.do(func() { n = r.oidc.asked }); return n }

func (p *provider) answer(r *Registry, path string, body []byte) (int, string) {
	form, _ := url.ParseQuery(string(body)) // nothing is found in another body
	refused := func(name string) (int, string) {
		return http.StatusBadRequest, encode(map[string]any{"error": name, "error_description": "it is so"})
	}
	grant := func() (int, string) {
		r.Logins++
		p.refresh = fmt.Sprintf("refresh-%d", r.tokens)
		return http.StatusOK, encode(map[string]any{"access_token": r.session(), "refresh_token": p.refresh,
			"expires_in": 300, "token_type": "Bearer"})
	}
	switch path {
	case realm + "/.well-known/openid-configuration":
		return http.StatusOK, encode(map[string]any{"issuer": r.URL + realm,
			"device_authorization_endpoint": r.URL + realm + "/device", "token_endpoint": r.URL + realm + "/token"})
	case realm + "/device":
		if form.Get("client_id") != ClientID || form.Get("scope") == "" {
			return refused("invalid_client")
		}
		p.asked++
		p.allowed, p.refused = false, false
		return http.StatusOK, encode(map[string]any{"device_code": fmt.Sprintf("device-%d", p.asked),
			"user_code": "ABCD-EFGH", "verification_uri": r.URL + realm + "/open",
			"verification_uri_complete": r.URL + realm + "/open?user_code=ABCD-EFGH", "expires_in": 600, "interval": 1})
	case realm + "/token":
		switch {
		case form.Get("grant_type") == "refresh_token" && form.Get("refresh_token") == p.refresh:
			return grant()
		case form.Get("grant_type") == "refresh_token", form.Get("device_code") != fmt.Sprintf("device-%d", p.asked):
			return refused("invalid_grant")
		case p.slow:
			p.slow = false
			return refused("slow_down")
		case p.refused:
			return refused("access_denied")
		case !p.allowed:
			return refused("authorization_pending")
		}
		p.allowed = false
		return grant()
	}
	return http.StatusNotFound, "{}"
}
