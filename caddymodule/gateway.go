// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/front/httpfront"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/aac"
	"github.com/aip-gateway/aip-gateway/trust/authn"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/trust/policy/decide"
)

func init() { caddy.RegisterModule(new(Gateway)) }

// Gateway makes an agent an AIP Partner: Leaders send it commands over JSON-RPC, and the gateway keeps the task
// life-cycle that the agent does not have.
//
// It answers POST on the path it is mounted at, on rpc and stream under it, and on the paths of the other dialects in
// callers. All other requests go to the next handler. If no handler answers, GET acs under the mount point is answered
// with the ACS, and GET health with whether the Partner takes calls. Any other path there is a 404 that says which
// paths exist.
type Gateway struct {
	// The agent behind the gateway.
	Agent AgentConfig `json:"agent"`

	// The name of this Partner for people: it is shown wherever a person reads, and taken wherever a person types, in
	// place of the AIC or of the agent's URL. Default: that in the file registered of card, else the path under which the
	// Partner is mounted, else the host of the agent, with a number where another Partner has it.
	Name string `json:"name,omitempty"`

	// The AIC of this Partner. Its tasks are stored under this name, so set it before the agent's URL changes.
	// The word registered stands for the AIC that the app's registry has assigned at the public URL; before it has, there
	// is none. Default: none; tasks are stored under the agent's URL, and answers of AIP 2 have the AIC in the certificate
	// that the site shows.
	AIC string `json:"aic,omitempty"`

	// The AID of this Partner, by which AUN clients address it. Default: the AID that the app's identities name for aic.
	AID string `json:"aid,omitempty"`

	// The public URL of the mount point, which all URLs in answers begin with. Default: the scheme and host of the
	// request, and base_path.
	PublicURL string `json:"public_url,omitempty"`

	// What the Partner's cards contain.
	Card CardConfig `json:"card,omitzero"`

	// The path under which the Partner is mounted. Default: none, as behind handle_path; in a Caddyfile, the path of
	// the directive's matcher.
	BasePath string `json:"base_path,omitempty"`

	// The dialects of callers: aip, aip/2, a2a (all its versions), a2a/1.0, a2a/0.3, a2a/legacy, agentapi and aun.
	// Default: aip and aip/2.
	Callers []string `json:"callers,omitempty"`

	// How callers prove who they are: an object, or its mode alone as a text. Default: required; by a verified client
	// certificate with an AIC, which senderId must equal.
	Identity Identity `json:"identity,omitzero"`

	// The AICs of the Leaders that may call. Default: all Leaders with a verified certificate.
	Allow []string `json:"allow,omitempty"`

	// How access tokens are checked that come beside the certificates of callers. Default: none are read.
	AAC *AAC `json:"aac,omitempty"`

	// Which calls of known callers are carried out. If there is a list of allow as well, both must let a call in. Default:
	// all.
	Policy *Policy `json:"policy,omitempty"`

	// How much callers may use over time. Each call must be within all quotas that apply to it. Default: as much as the
	// limits allow.
	Quotas []Quota `json:"quotas,omitempty"`

	// What happens to a task that the agent has finished: auto (the task is completed at once, for all callers) or confirm
	// (for callers whose dialect cannot accept a result it asks for input, so that they can continue it). Default: Leaders
	// of AIP accept results themselves, and for other callers it is as with auto.
	Completion string `json:"completion,omitempty"`

	// Defaults for the timeouts that a Leader may set when it starts a task.
	Timeouts Timeouts `json:"timeouts,omitzero"`

	// Limits of one request, of one Leader, and of all Leaders together.
	Limits Limits `json:"limits,omitzero"`

	// How long a stream may be silent before a comment is sent, so that proxies keep the connection. Default: 15s.
	Heartbeat caddy.Duration `json:"heartbeat,omitempty"`

	// How long the caller of a stream, or of an answer of more than 64 KiB, may read nothing before its connection is
	// closed. A stream can be resumed where it was. Default: 30s.
	WriteTimeout caddy.Duration `json:"write_timeout,omitempty"`

	// How the Partner takes part in groups. Default: none; invitations are refused.
	Group *Group `json:"group,omitempty"`

	app      *App
	assigned atomic.Pointer[string] // see title
	shown    atomic.Pointer[string] // the AIC in the certificate of its site, if it has none; see sender
	warned   bool                   // that there is none

	log     *slog.Logger
	gateway *gateway.Gateway // nil before Provision
	ready   atomic.Bool      // it was logged
	policy  *policy.Policy   // nil for none
	aac     *aac.Gate        // nil for none
	point   *decide.Point    // that the policy asks; nil for none
	front   *httpfront.Front
	callers *authn.Authenticator // nil before Provision
	leaders *identity.Guard      // likewise

	says       conf.Fingerprint  // of the settings as they stand in the configuration
	server     *caddyhttp.Server // on which the handler is; nil if that is not known
	logsAccess bool              // the server has access logs
	trusted    []string          // the files that the server checks the certificates of callers against

	registered bool // its AIC is the one that the registry assigns
	compared   bool // its ACS with the one that is registered

	logsCredentials bool // they show the header Authorization
}

// CaddyModule returns the Caddy module information.
func (*Gateway) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_gateway", New: func() caddy.Module { return new(Gateway) }}
}

// ServeHTTP answers requests for the Partner and passes the others on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	record := new(accessRecord)
	partner := g.front.Find(r, &record.Summary)
	if partner == nil {
		g.callers.Forget(r)
		return g.pass(w, r, next, record)
	}
	g.serve(w, r, partner, record)
	return nil
}

// serve has a handler of the front answer a request.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, partner http.Handler, record *accessRecord) {
	g.app.configuration.Enter()
	defer g.app.configuration.Leave()
	record.setPlaceholders(r)
	if g.logsAccess {
		defer record.addTo(r)
	}
	partner.ServeHTTP(w, r)
}

// unhandled is the variable that Caddy sets if no handler has answered a request.
const unhandled = "unhandled"

// pass lets the next handlers answer a request. If none does, the front may. Else Caddy would answer 200 without a
// body, which a Leader with a wrong URL would take for success. So a path under the mount point is answered with 404.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, record *accessRecord) error {
	if !g.front.Under(r) {
		return next.ServeHTTP(w, r)
	}
	caddyhttp.SetVar(r.Context(), unhandled, nil)
	mount, offered := g.front.Mount(r), g.front.Offered(r, &record.Summary) // later handlers may rewrite the path
	if offered != nil && g.isAlone(r) {
		g.serve(w, r, offered, record)
		return nil
	}
	err := next.ServeHTTP(w, r)
	none, _ := caddyhttp.GetVar(r.Context(), unhandled).(bool)
	switch failed, is := errors.AsType[caddyhttp.HandlerError](err); {
	case offered != nil && is && failed.StatusCode == http.StatusNotFound: // as of file_server
	case err != nil:
		return err
	case !none:
		return nil
	}
	caddyhttp.SetVar(r.Context(), unhandled, nil)
	if offered != nil {
		g.serve(w, r, offered, record)
		return nil
	}
	g.front.NotFound(w, mount)
	return nil
}

// Cleanup closes idle connections to the agent, and ends fetches of keys. Requests in flight keep theirs.
func (g *Gateway) Cleanup() error {
	if g.gateway != nil {
		g.gateway.Close()
	}
	if g.point != nil {
		g.point.Close()
	}
	if g.aac != nil {
		g.aac.Close()
	}
	if g.callers != nil {
		g.callers.Close()
	}
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Gateway)(nil)
	_ caddy.CleanerUpper          = (*Gateway)(nil)
	_ caddyhttp.MiddlewareHandler = (*Gateway)(nil)
)
