// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// realm is where the provider of OpenID Connect is.
const realm = "/realms/acps-registry"

// ClientID is the client that the provider knows.
const ClientID = "registry-cli"

// provider is a provider of OpenID Connect, as registries of ACPs 2.2 have.
type provider struct {
	allowed bool // the person has logged in
	refused bool
	asked   int // how often a person was asked to log in
	refresh string
}

// NewOIDC starts a registry whose users log in at a provider of OpenID Connect, and that keeps the certificate of
// entities, as one of ACPs 2.2 does.
func NewOIDC(t testing.TB) *Registry {
	r := New(t)
	r.oidc = new(provider)
	return r
}

// Issuer returns the issuer's URL.
func (r *Registry) Issuer() string { return r.URL + realm }

// LogIn has the person log in who was asked, or refuse to.
func (r *Registry) LogIn(allowed bool) {
	r.do(func() { r.oidc.allowed, r.oidc.refused = allowed, !allowed })
}

// EndSession has the provider forget the session.
func (r *Registry) EndSession() { r.do(func() { r.oidc.refresh, r.token = "ended", "" }) }

// Asked returns how often a person was asked to log in.
func (r *Registry) Asked() (n int) { r.do(func() { n = r.oidc.asked }); return n }

func (p *provider) answer(r *Registry, path string, body []byte) (int, string) {
	form, _ := url.ParseQuery(string(body)) // nothing is found in what is none
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

// LoseCertificates has the registry forget the certificate of entities, as one of ACPs 2.1 does.
func (r *Registry) LoseCertificates() { r.do(func() { r.lose = true }) }

// entity registers an entity, which is approved at once.
func (r *Registry) entity(body []byte) (int, string) {
	var sent map[string]any
	if json.Unmarshal(body, &sent) != nil || sent["ontologyAic"] == nil {
		return http.StatusUnprocessableEntity, `{"title":"Request validation failed"}`
	}
	for _, a := range r.agents {
		if a["entity"] == true && a["is_deleted"] != true && encode(a["points"]) == encode(sent["endPoints"]) {
			status, text := Captured(r.t, "44-entity-same-url")
			return status, replaced(text, "1.2.156.3088.1.0001.00001.YWG8FE.OGVPSG.0ZO8", fmt.Sprint(a["aic"]))
		}
	}
	r.entities++
	aic := fmt.Sprintf("1.2.156.3088.1.0001.00001.YWG8FE.OGVPS%d.0ZO8", r.entities)
	var acs map[string]any
	_, text := Captured(r.t, "50-acs-entity")
	_ = json.Unmarshal([]byte(text), &acs)
	acs["aic"], acs["endPoints"] = aic, sent["endPoints"]
	if !r.lose && sent["certificate"] != nil {
		acs["certificate"] = sent["certificate"]
	}
	var listed struct {
		Items []map[string]any `json:"items"`
	}
	_, text = Captured(r.t, "52-list-entity")
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		r.t.Error(err)
	}
	a := listed.Items[0]
	a["id"], a["aic"], a["acs"], a["entity"], a["points"] = fmt.Sprintf("entity-%d", r.entities), aic, acs, true,
		sent["endPoints"]
	r.agents = append(r.agents, a)
	status, text := Captured(r.t, "43-entity")
	return status, replaced(text, "1.2.156.3088.1.0001.00001.YWG8FE.OGVPSG.0ZO8", aic)
}

// TLS starts the service of entities, which demands a certificate.
func (r *Registry) TLS() *httptest.Server {
	s := httptest.NewUnstartedServer(r)
	r.t.Cleanup(func() { s.Close() })
	return s
}
