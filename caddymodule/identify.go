// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/front/httpfront"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/authn"
)

func init() {
	caddy.RegisterModule(new(Identify))
	caddy.RegisterModule(new(MatchMethod))
	httpcaddyfile.RegisterHandlerDirective("aip_identify", conf.Handler[Identify])
	// Before all that may use its placeholders.
	httpcaddyfile.RegisterDirectiveOrder("aip_identify", httpcaddyfile.Before, "map")
}

// Identify finds out the caller and the request before aip_gateway, for expressions, forward_auth or rate limits. It
// sets placeholders, and refuses nothing by itself:
//
//   - {aip.leader} and {aip.proof}: the Leader, and the kind of proof; empty for a caller without one.
//   - {aip.method}: the dialect's name of the request, such as message/send.
//   - {aip.command}: its name in all dialects: get, start, continue, cancel, complete, re-stream, set-webhook,
//     get-webhooks, delete-webhooks, list, extended-card, join-group or unknown.
//
// The body is read only for the method or the command (log_append asks in time, a log format does not), and reaches
// later handlers whole. One beyond limits, or over 64 KiB of a caller without a proof, is refused.
//
// Its callers, base_path and limits are those of the aip_gateway behind it: a call that was changed between them is
// refused (−32603). Refuse by error or abort, because respond comes after aip_gateway.
//
//	agent.example.com {
//		aip_identify
//		@stranger expression `{aip.leader} == '' && {aip.command} != 'get'`
//		error @stranger 403
//		forward_auth 127.0.0.1:9091 {
//			uri /check
//			header_up X-Leader {aip.leader}
//		}
//		@start aip_method start
//		log_append @start starts {aip.leader}
//		aip_gateway a2a http://127.0.0.1:9101 {
//			identity optional
//		}
//	}
type Identify struct {
	// As in aip_gateway, without accept; leave it out with aac. Default: a client certificate.
	Identity Identity `json:"identity,omitzero"`

	app    *App
	server *caddyhttp.Server
	proofs *authn.Authenticator // nil for the client certificate alone

	once       sync.Once
	previewers []*httpfront.Previewer // for the Partners behind it, once all are provisioned
}

// CaddyModule returns the Caddy module information.
func (*Identify) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_identify", New: func() caddy.Module { return new(Identify) }}
}

// Provision sets up the handler.
func (i *Identify) Provision(ctx caddy.Context) error {
	if err := i.check(); err != nil {
		return err
	}
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	i.app = app.(*App)
	i.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if i.Identity.IsZero() {
		return nil
	}
	i.Identity.fillDefaults()
	if i.proofs, err = i.Identity.authenticator(i.app); err != nil {
		return err
	}
	i.proofs.Log = slog.New(doctor.Advising(ctx.Slogger().Handler(), nil))
	return nil
}

// findPartners makes a previewer for each Partner behind the handler, the one with the longest path first, and one for
// requests to no Partner.
func (i *Identify) findPartners() {
	for _, behind := range doctor.Behind(i.server, i) {
		g, ok := behind.Handler.(*Gateway)
		if !ok {
			continue
		}
		callers, _ := gateway.Callers(g.Callers, false, nil) // an error has refused g
		p := i.previewer(gateway.Config{Callers: callers,
			Limits: jsonrpc.Limits{Bytes: g.Limits.Body, Depth: jsonrpc.DefaultDepth},
			Memory: limit.Limits{Total: g.Limits.Memory, PerLeader: g.Limits.memoryPerLeader()}})
		p.Base = behind.Cut + g.BasePath
		i.previewers = append(i.previewers, p)
	}
	slices.SortStableFunc(i.previewers, func(p, q *httpfront.Previewer) int { return len(q.Base) - len(p.Base) })
	i.previewers = append(i.previewers, i.previewer(gateway.Config{}))
}

// previewer returns what reads requests as a Partner does.
func (i *Identify) previewer(c gateway.Config) *httpfront.Previewer {
	c.Process, c.Revocation = &process.Process, &i.app.configuration.Trust
	c.Guard = &identity.Guard{Mode: identity.Optional}
	c.MemoryPatience, c.Streaming = memoryPatience, gateway.Streaming{Drain: process.Exiting}
	p := &httpfront.Previewer{Reader: gateway.NewReader(c), BodyTimeout: bodyTimeout}
	if i.proofs != nil {
		p.Authenticate, p.Proofs = joined(i.proofs, i.app.identities), i.Identity.proofs(false)
	}
	return p
}

// previewerOf returns the previewer for a request.
func (i *Identify) previewerOf(r *http.Request) *httpfront.Previewer {
	i.once.Do(i.findPartners)
	for _, p := range i.previewers {
		if rest, ok := strings.CutPrefix(r.URL.Path, p.Base); ok && (rest == "" || rest[0] == '/') {
			return p
		}
	}
	return i.previewers[len(i.previewers)-1]
}

// Cleanup ends fetches of keys.
func (i *Identify) Cleanup() error {
	if i.proofs != nil {
		i.proofs.Close()
	}
	return nil
}

// ServeHTTP calls the next handler, with the placeholders.
func (i *Identify) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if httpfront.PreviewOf(r.Context()) != nil {
		return caddyhttp.Error(http.StatusInternalServerError,
			errors.New("aip_identify is there twice for one request; give each a matcher of its own"))
	}
	preview, r := i.previewerOf(r).Begin(w, r)
	defer preview.End()
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(func(name string) (any, bool) { return previewed(preview, name) })
	}
	return next.ServeHTTP(w, r)
}

// previewed returns the value of a placeholder. Once the request was answered, those of aip_gateway count.
func previewed(p *httpfront.Preview, name string) (any, bool) {
	answered := gateway.Summary{}
	if s := p.Summary(); s != nil {
		answered = *s
	}
	peer := p.Accepted()
	switch name {
	case "aip.leader":
		if answered.Leader == "" && peer.Verified() {
			return peer.Leader(), true
		}
		return answered.Leader, true
	case "aip.proof":
		return peer.Proof.String(), true
	case "aip.method":
		asked, _ := p.Asked()
		return asked.Method, true
	case "aip.command":
		if answered.Command != "" {
			return answered.Command, true
		}
		asked, _ := p.Asked()
		return asked.Command, true
	}
	return nil, false
}

// UnmarshalCaddyfile sets up the handler from a Caddyfile. Syntax:
//
//	aip_identify [<matcher>] {
//		identity [required|optional|off] { ... }
//	}
func (i *Identify) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadOptions(d, i, func(p *conf.Parser, i *Identify) conf.Options {
		return conf.Options{"identity": identityOption(p, &i.Identity)}
	}, (*Identify).check)
}

// check checks what was written, and changes nothing.
func (i *Identify) check() error {
	proofs := i.Identity
	proofs.fillDefaults()
	return proofs.check()
}

// MatchMethod matches requests by a method, such as message/send, or by a command, such as start, of an aip_identify
// before it.
type MatchMethod []string

// CaddyModule returns the Caddy module information.
func (MatchMethod) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.matchers.aip_method", New: func() caddy.Module { return new(MatchMethod) }}
}

// errNoMethod refuses a matcher that would match nothing.
var errNoMethod = errors.New("aip_method needs at least one method or command")

// Validate checks the settings.
func (m MatchMethod) Validate() error {
	if len(m) == 0 {
		return errNoMethod
	}
	return nil
}

// UnmarshalCaddyfile sets up the matcher from a Caddyfile. Syntax:
//
//	aip_method <method|command>...
func (m *MatchMethod) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	for d.Next() {
		names := d.RemainingArgs()
		if len(names) == 0 {
			return d.WrapErr(errNoMethod)
		}
		*m = append(*m, names...)
		if d.NextBlock(0) {
			return d.Err("aip_method takes no block")
		}
	}
	return nil
}

// MatchWithError reports whether a request asks for one of the methods. A request of which that cannot be known is
// refused: a configuration that denies by the matcher would let it in, and one that allows by it would not.
func (m MatchMethod) MatchWithError(r *http.Request) (bool, error) {
	preview := httpfront.PreviewOf(r.Context())
	if preview == nil {
		return false, caddyhttp.Error(http.StatusInternalServerError,
			errors.New("the matcher aip_method needs the directive aip_identify in its site"))
	}
	asked, err := preview.Asked()
	switch {
	case err == nil:
		return slices.Contains(m, asked.Method) || slices.Contains(m, asked.Command), nil
	case task.KindOf(err) == task.LimitExceeded:
		return false, caddyhttp.Error(http.StatusRequestEntityTooLarge, err)
	}
	return false, caddyhttp.Error(http.StatusBadRequest, err)
}

// Interface guards.
var (
	_ caddy.Provisioner                 = (*Identify)(nil)
	_ caddy.CleanerUpper                = (*Identify)(nil)
	_ caddyhttp.MiddlewareHandler       = (*Identify)(nil)
	_ caddyhttp.RequestMatcherWithError = MatchMethod(nil)
	_ caddy.Validator                   = MatchMethod(nil)
	_ caddyfile.Unmarshaler             = (*MatchMethod)(nil)
)
