// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/accesslog"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/bounds"
	"github.com/aip-gateway/aip-gateway/caddymodule/cards"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/proof"
	"github.com/aip-gateway/aip-gateway/caddymodule/rules"
	"github.com/aip-gateway/aip-gateway/front/httpfront"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
	"github.com/aip-gateway/aip-gateway/trust/aac"
	"github.com/aip-gateway/aip-gateway/trust/authn"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/trust/policy/decide"
)

func init() { caddy.RegisterModule(new(Gateway)) }

// Gateway makes an agent a Partner. It answers POST at its mount point and at the paths of its dialects below, and GET
// for its cards; see docs/dialects.md. All other requests go to the next handler. If no handler answers, GET acs is the
// ACS, GET health says whether the Partner takes calls, and other paths below the mount point are 404.
//
// It stands before respond, reverse_proxy and file_server, and after header and forward_auth. A path matcher sets
// base_path; with a named matcher set it, and behind handle_path there is none. Caddy answers paths of no route with
// 200: add `respond "nothing is served at this path" 404`. Two handlers for one agent share its tasks.
//
//	:8443 {
//		aip_gateway /one* a2a http://127.0.0.1:9101
//		handle_path /two/* {
//			aip_gateway {
//				agent a2a/legacy https://agent.example.com/a2a {
//					header_up Authorization "Bearer {env.AGENT_TOKEN}"
//					max_runs 200
//				}
//				aic 10001000011K912345E789ABCDEF2353
//				allow 10001000011K94ZH3VDXLP4S5EB63614
//			}
//		}
//	}
type Gateway struct {
	// The agent.
	Agent agents.Config `json:"agent"`

	// The Partner's name for people, and the label agent of its metrics: at most 64 letters, digits, ., - and _. Default:
	// that in the file registered of card, else the path, else the agent's host.
	Name string `json:"name,omitempty"`

	// The AIC, and the name of its tasks in the store: set it before the agent's URL changes. With registered, the one
	// from registry at public_url. Default: none; the agent's URL is the name, and AIP 2 answers with the AIC in the
	// site's certificate.
	AIC string `json:"aic,omitempty"`

	// The AID for AUN clients. Default: that of aic in identities.
	AID string `json:"aid,omitempty"`

	// The public URL of the mount point; may hold {AIC}. Default: the scheme and host of the request, and base_path.
	PublicURL string `json:"public_url,omitempty"`

	// The content of the cards: see docs/dialects.md#cards. An ACS needs aic and the organization, in 01.00 its URL and
	// licence, too.
	Card cards.Config `json:"card,omitzero"`

	// The mount point. Default: the path of the matcher, else none.
	BasePath string `json:"base_path,omitempty"`

	// Dialects of callers: aip, aip/2, a2a (all its versions), a2a/1.0, a2a/0.3, a2a/legacy, agentapi, aun. Default: aip
	// and aip/2.
	Callers []string `json:"callers,omitempty"`

	// Proofs of callers, see docs/security.md#proofs. In JSON, the mode alone may stand for it.
	Identity proof.Identity `json:"identity,omitzero"`

	// AICs of Leaders with access; callers without a certificate are then refused. May be repeated. Default: all verified
	// Leaders.
	Allow []string `json:"allow,omitempty"`

	// Access tokens beside certificates (AAC v02.02): see docs/security.md#access-tokens-of-aac. Default: none are read.
	AAC *AAC `json:"aac,omitempty"`

	// Rules for calls of known callers, beside allow: see docs/policy.md. Default: none.
	Policy *rules.Policy `json:"policy,omitempty"`

	// Use over time; each call must be within all quotas for it. See docs/policy.md#quotas. May be repeated. Default:
	// none.
	Quotas []rules.Quota `json:"quotas,omitempty"`

	// A task after the agent's end: auto (completed at once) or confirm (callers without completion in their dialect see a
	// question, and can continue). Default: as auto, but Leaders of AIP complete it.
	Completion string `json:"completion,omitempty"`

	// Defaults for tasks without their own.
	Timeouts bounds.Timeouts `json:"timeouts,omitzero"`

	// Bounds of a request, of a Leader, and of all: see docs/production.md#limits-and-what-happens-at-them.
	Limits bounds.Limits `json:"limits,omitzero"`

	// Silence on a stream before a comment is sent. At least 1s. Default: 15s.
	Heartbeat caddy.Duration `json:"heartbeat,omitempty"`

	// The time for a caller to read nothing of a stream, or of an answer over 64 KiB, before its connection is closed. At
	// least 1s. Default: 30s.
	WriteTimeout caddy.Duration `json:"write_timeout,omitempty"`

	// Groups of AIP, by RabbitMQ: see docs/groups.md. Default: none; invitations are refused (−32007).
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

// The values of completion. Without one, only Leaders of AIP complete their tasks themselves.
const (
	completionAuto    = "auto"
	completionConfirm = "confirm"
)

// name is the name under which the Partner's tasks are stored.
func (g *Gateway) name() string { return cmp.Or(g.AIC, g.Agent.Name()) }

// publicURL returns the public URL of the mount point, with the AIC in place of {AIC}. A slash at its end stays: there
// are proxies that answer without it by a redirect.
func (g *Gateway) publicURL() string {
	if g.AIC == "" {
		return g.PublicURL // a registry puts it there
	}
	return strings.ReplaceAll(g.PublicURL, acs.Placeholder, g.AIC)
}

// aid returns the AID of the Partner; empty for none.
func (g *Gateway) aid() string { return cmp.Or(g.AID, g.app.identities.AID(identity.AIC(g.AIC))) }

// ServeHTTP answers requests for the Partner and passes the others on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	record := new(accesslog.Record)
	partner := g.front.Find(r, &record.Summary)
	if partner == nil {
		g.callers.Forget(r)
		return g.pass(w, r, next, record)
	}
	g.serve(w, r, partner, record)
	return nil
}

// serve has a handler of the front answer a request.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, partner http.Handler, record *accesslog.Record) {
	g.app.configuration.Enter()
	defer g.app.configuration.Leave()
	record.SetPlaceholders(r)
	if g.logsAccess {
		defer record.AddTo(r)
	}
	partner.ServeHTTP(w, r)
}

// unhandled is the variable that Caddy sets if no handler has answered a request.
const unhandled = "unhandled"

// pass lets the next handlers answer a request. If none does, the front may. Else Caddy would answer 200 without a
// body, which a Leader with a wrong URL would take for success. So a path under the mount point is answered with 404.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, record *accesslog.Record) error {
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

// Handlers before a Partner, such as handle_path, may cut off the begin of a path. Callers have it in their URLs, so it
// belongs to the mount point in all that names one.

// mountURL returns the URL at which this machine reaches the mount, as far as the configuration says it; empty if it
// does not.
func (g *Gateway) mountURL() string {
	if g.PublicURL != "" {
		return g.publicURL()
	}
	if g.server == nil || len(g.server.Listen) == 0 {
		return ""
	}
	at, err := caddy.ParseNetworkAddress(g.server.Listen[0])
	if err != nil || at.IsUnixNetwork() || at.IsFdNetwork() {
		return ""
	}
	u := url.URL{Scheme: "http", Host: "localhost", Path: g.BasePath}
	if way := doctor.WayTo(g.server, g); way != nil {
		u.Path = way.Cut + g.BasePath
	}
	for _, host := range slices.Backward(g.hosts()) {
		if !strings.ContainsAny(host, "*{") {
			u.Host = host
		}
	}
	port := int(at.StartPort)
	if len(g.server.TLSConnPolicies) > 0 {
		u.Scheme = "https"
	}
	if port != map[string]int{"http": caddyhttp.DefaultHTTPPort, "https": caddyhttp.DefaultHTTPSPort}[u.Scheme] {
		u.Host += ":" + strconv.Itoa(port)
	}
	return u.String()
}

// isAlone reports whether a part of the path was cut off, and no handler may answer the request in the Partner's place
// that comes after it and stands, as it does, where the path is cut. What follows further out is meant for whole paths:
// the /health of a site is not that of a mount at /agents/one.
func (g *Gateway) isAlone(r *http.Request) bool {
	if stripped(r) == "" {
		return false
	}
	way := doctor.WayTo(g.server, g)
	return way != nil && way.Cut != "" && way.IsLast(r)
}

// stripped returns what handle_path, or another handler, has cut off the path of a request.
func stripped(r *http.Request) string {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok || len(original.URL.Path) <= len(r.URL.Path) {
		return ""
	}
	cut, is := strings.CutSuffix(original.URL.Path, r.URL.Path)
	if !is {
		return ""
	}
	return cut
}

// hosts returns the names of the hosts that the Partner's site takes; none if it takes all.
func (g *Gateway) hosts() []string {
	way := doctor.WayTo(g.server, g)
	if way == nil {
		return nil
	}
	return doctor.HostsOf(way.Site)
}

// siteAccessLog returns the access log of the first host of the Partner's site, for commands that come by no request.
// nil if the site has none.
func (g *Gateway) siteAccessLog() *slog.Logger {
	if !g.logsAccess {
		return nil
	}
	hosts := append(g.hosts(), "") // a site may take all hosts
	return g.app.access.OfHost(g.server.Logs, hosts[0])
}

// Mount implements doctor.PartnerHandler.
func (g *Gateway) Mount() string { return g.BasePath }

// HandedOn implements doctor.PartnerHandler.
func (g *Gateway) HandedOn() (roots []string, some bool) {
	if h := g.Identity.ClientCertHeader; h != nil {
		return h.TrustPool, true
	}
	return nil, false
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Gateway)(nil)
	_ caddy.CleanerUpper          = (*Gateway)(nil)
	_ caddyhttp.MiddlewareHandler = (*Gateway)(nil)
	_ doctor.PartnerHandler       = (*Gateway)(nil)
)
