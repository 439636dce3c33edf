// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/identity"
)

func init() {
	caddy.RegisterModule(new(Discover))
	httpcaddyfile.RegisterHandlerDirective("aip_discovery", conf.Handler[Discover])
	httpcaddyfile.RegisterDirectiveOrder("aip_discovery", httpcaddyfile.Before, "respond")
}

// Discover answers queries of ADP about all Partners with an aic and a public_url, as far as the caller may call them:
// POST on /acps-adp-v2/discover and /discover (v02), and on /api/discovery/ (v01). GET /agents lists A2A cards. All
// other requests go to the next handler. See docs/discovery.md#answering-queries.
type Discover struct {
	// The AIC of this server; a request from itself is refused. Default: none.
	AIC string `json:"aic,omitempty"`

	// URLs of discover at other servers, in turn (307), for queries without a result and during a drain. Default: none.
	Redirect []string `json:"redirect,omitempty"`

	app  *App
	next atomic.Uint64 // of Redirect
}

// CaddyModule returns the Caddy module information.
func (*Discover) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_discovery", New: func() caddy.Module { return new(Discover) }}
}

// Provision sets up the handler.
func (d *Discover) Provision(ctx caddy.Context) error {
	if err := d.check(); err != nil {
		return err
	}
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	d.app = app.(*App)
	return nil
}

// UnmarshalCaddyfile reads the directive. Syntax:
//
//	aip_discovery [<matcher>] {
//		aic      <aic>
//		redirect <url>...
//	}
func (d *Discover) UnmarshalCaddyfile(from *caddyfile.Dispenser) error {
	return conf.ReadOptions(from, d, func(p *conf.Parser, d *Discover) conf.Options {
		return conf.Options{"aic": p.Word(&d.AIC), "redirect": p.Words(&d.Redirect)}
	}, (*Discover).check)
}

// check checks the settings, and brings the AIC into its canonical form.
func (d *Discover) check() error {
	if d.AIC != "" {
		aic, err := conf.AIC("aic", d.AIC)
		if err != nil {
			return err
		}
		d.AIC = string(aic)
	}
	for _, u := range d.Redirect {
		if err := conf.PublicURL("redirect", u); err != nil {
			return err
		}
	}
	return nil
}

// ServeHTTP answers queries.
func (d *Discover) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	v1 := false
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/acps-adp-v2/discover", "/discover":
	case "/api/discovery":
		v1 = true
	case "/agents":
		return d.listCards(w, r)
	default:
		return next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		return caddyhttp.Error(http.StatusMethodNotAllowed, errors.New("use POST"))
	}
	if err := d.app.configuration.Ready(r.Context()); err != nil {
		return caddyhttp.Error(http.StatusServiceUnavailable, err)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // where there is one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, adp.MaxBody))
	if err != nil {
		return caddyhttp.Error(http.StatusRequestEntityTooLarge, err)
	}
	d.answer(w, r, body, v1)
	return nil
}

// answer answers a query.
func (d *Discover) answer(w http.ResponseWriter, r *http.Request, body []byte, v1 bool) {
	parse := adp.Parse
	if v1 {
		parse = adp.ParseV1
	}
	query, bad := parse(body)
	if bad == nil {
		bad = query.Check(d.AIC, aicOf(r))
	}
	if bad != nil {
		answerWith(w, bad.Status(), bad.Encode())
		return
	}
	ends := d.app.configuration.Ends()
	if ends && len(d.Redirect) > 0 {
		d.redirect(w, true)
		return
	}
	found := d.app.configuration.Discoverer.Find(r.Context(), query,
		func(e *catalog.Entry) bool { return d.app.mayCall(r, e) })
	switch {
	case found.Empty() && len(d.Redirect) > 0:
		d.redirect(w, false)
	case v1:
		answerWith(w, http.StatusOK, found.EncodeV1())
	default:
		answerWith(w, http.StatusOK, found.Encode())
	}
}

// listCards answers with the A2A cards of the agents that the caller may call, as one list. A2A has no list of its own:
// it is what its registries call curated.
func (d *Discover) listCards(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		return caddyhttp.Error(http.StatusMethodNotAllowed, errors.New("use GET"))
	}
	if err := d.app.configuration.Ready(r.Context()); err != nil {
		return caddyhttp.Error(http.StatusServiceUnavailable, err)
	}
	entries := process.Agents.Entries(r.Context())
	ctx, cancel := context.WithTimeout(r.Context(), listPatience)
	defer cancel()
	list := []json.RawMessage{}
	for _, e := range entries {
		if card := d.app.a2aCard(ctx, r, e); card != nil {
			list = append(list, card)
		}
	}
	body, err := json.Marshal(map[string][]json.RawMessage{"agents": list})
	if err != nil {
		return err
	}
	answerWith(w, http.StatusOK, body)
	return nil
}

// listPatience is how long a list waits for cards. A mount that has one of its agent, of whatever age, does not wait.
const listPatience = 2 * time.Second

// a2aCard returns the A2A card of the first mount of an agent that has one, and a public URL, and that the sender of a
// request may call; nil for none.
func (a *App) a2aCard(ctx context.Context, r *http.Request, e *catalog.Entry) []byte {
	for _, g := range a.mounts[e.Name] {
		document := g.gateway.Document(".well-known/agent-card.json")
		if document == nil || g.PublicURL == "" || !a.mayCallAt(r, g) {
			continue
		}
		if card, err := document(ctx, g.publicURL(), ""); err == nil && card != nil {
			return card
		}
	}
	return nil
}

// redirect sends a caller to the next discovery server.
func (d *Discover) redirect(w http.ResponseWriter, ends bool) {
	to := d.Redirect[(d.next.Add(1)-1)%uint64(len(d.Redirect))]
	w.Header().Set("Location", to)
	e := adp.Redirected(ends)
	answerWith(w, e.Status(), e.Encode())
}

// answerWith sends an answer, which is for this caller alone.
func answerWith(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has left needs no answer
}

// aicOf returns the AIC in the verified certificate of a connection; empty for none.
func aicOf(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ""
	}
	aic, err := identity.FromCertificate(r.TLS.VerifiedChains[0][0])
	if err != nil {
		return ""
	}
	return string(aic)
}

// mayCall reports whether the sender of a request may call an agent, at any of its mounts.
func (a *App) mayCall(r *http.Request, e *catalog.Entry) bool {
	return slices.ContainsFunc(a.mounts[e.Name], func(g *Gateway) bool { return a.mayCallAt(r, g) })
}

// mayCallAt reports whether the sender of a request may call a mount.
func (a *App) mayCallAt(r *http.Request, g *Gateway) bool {
	if g.Identity.ClientCertHeader != nil { // it is removed from the request
		r = r.Clone(r.Context())
	}
	peer, err := joined(g.callers, a.identities)(r)
	return err == nil && g.gateway.MayCall(r.Context(), peer) == nil
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Discover)(nil)
	_ caddyhttp.MiddlewareHandler = (*Discover)(nil)
	_ caddyfile.Unmarshaler       = (*Discover)(nil)
)
