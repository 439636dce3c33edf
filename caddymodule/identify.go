// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/bounds"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/proof"
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
	httpcaddyfile.RegisterDirective("aip_identify", parseIdentify)
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
// Its callers, base_path and limits are those of aip_gateway: a call read otherwise there is refused (−32603), also
// one about another task or session. With identity off in aip_gateway, write it here, too: no caller has a proof then.
// Refuse by error or abort, because respond comes after aip_gateway.
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
//
// For a mount in a handle or handle_path, write all of them in a route, which keeps their order: Caddy sorts handle and
// handle_path before error and abort.
//
//	agents.example.com {
//		route {
//			aip_identify /planner/*
//			@stranger expression `{aip.leader} == '' && {aip.command} != 'get'`
//			error @stranger 403
//			handle_path /planner/* {
//				aip_gateway a2a http://127.0.0.1:9101 {
//					identity optional
//				}
//			}
//		}
//	}
type Identify struct {
	// The mount point. Default: the path of the matcher, else none.
	BasePath string `json:"base_path,omitempty"`

	// As in aip_gateway. Default: aip and aip/2.
	Callers []string `json:"callers,omitempty"`

	// As in aip_gateway, without accept; leave it out with aac. Default: a client certificate.
	Identity proof.Identity `json:"identity,omitzero"`

	// As in aip_gateway.
	Limits IdentifyLimits `json:"limits,omitzero"`

	previewer httpfront.Previewer
	proofs    *authn.Authenticator // nil for the client certificate alone
}

// IdentifyLimits bound what is read of requests before the aip_gateway handler answers them.
type IdentifyLimits struct {
	// Bytes of a request. Default: as in aip_gateway.
	Body int `json:"body,omitempty"`

	// Memory of bodies, together with aip_gateway. Default: as there.
	Memory int64 `json:"memory,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*Identify) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_identify", New: func() caddy.Module { return new(Identify) }}
}

// Provision sets up the handler.
func (i *Identify) Provision(ctx caddy.Context) error {
	if len(i.Callers) == 0 {
		i.Callers = slices.Clone(defaultCallers)
	}
	i.BasePath = strings.TrimSuffix(i.BasePath, "/")
	limits := i.limits()
	if err := i.check(); err != nil {
		return err
	}
	callers, err := gateway.Callers(i.Callers, false, nil)
	if err != nil {
		return fmt.Errorf("callers: %w", err)
	}
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	i.previewer = httpfront.Previewer{
		Reader: gateway.NewReader(gateway.Config{
			Process: &process.Process, Callers: callers, Guard: &identity.Guard{Mode: i.mode()},
			Revocation:     &app.(*App).configuration.Trust,
			Limits:         jsonrpc.Limits{Bytes: limits.Body, Depth: jsonrpc.DefaultDepth},
			Memory:         limit.Limits{Total: limits.Memory, PerLeader: limits.MemoryPerLeader()},
			MemoryPatience: memoryPatience,
			Streaming:      gateway.Streaming{Drain: process.Exiting},
		}),
		Base: i.BasePath, BodyTimeout: bodyTimeout,
	}
	if i.Identity.IsZero() {
		return nil
	}
	i.Identity.FillDefaults()
	if i.proofs, err = i.Identity.Authenticator(&app.(*App).pki, &process.TokenKeys); err != nil {
		return err
	}
	i.proofs.Log = slog.New(doctor.Advising(ctx.Slogger().Handler(), nil))
	i.previewer.Authenticate = joined(i.proofs, app.(*App).identities)
	i.previewer.Proofs = i.Identity.Proofs(false)
	return nil
}

// mode returns the mode in which callers are known: one without a proof is no one, and with off, no caller has one.
func (i *Identify) mode() identity.Mode {
	if i.Identity.Mode == string(identity.Off) {
		return identity.Off
	}
	return identity.Optional
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
	preview, r := i.previewer.Begin(w, r)
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
		if answered.Leader != "" && peer.Verified() && answered.Leader != peer.Leader() {
			return "", true // identity off: the call was carried out for another Leader, as its senderId says
		}
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

// parseIdentify parses the directive. Syntax:
//
//	aip_identify [<matcher>] {
//		base_path <path>
//		callers   <dialect>...
//		identity  [required|optional|off] { ... }
//		limits {
//			body   <size>
//			memory <size>
//		}
//	}
//
// A path matcher also says where the Partner is mounted.
func parseIdentify(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	i := new(Identify)
	return mounted(h, i, &i.BasePath)
}

// UnmarshalCaddyfile sets up the handler from a Caddyfile.
func (i *Identify) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadOptions(d, i, func(p *conf.Parser, i *Identify) conf.Options {
		l := &i.Limits
		return conf.Options{
			"base_path": p.Word(&i.BasePath),
			"callers":   p.Words(&i.Callers),
			"identity":  proof.Option(p, &i.Identity),
			"limits": p.Section(conf.Options{
				"body":   conf.Size(p, &l.Body),
				"memory": conf.Size(p, &l.Memory),
			}),
		}
	}, (*Identify).check)
}

// limits returns the limits with their defaults.
func (i *Identify) limits() bounds.Limits {
	l := bounds.Limits{Body: i.Limits.Body, Memory: i.Limits.Memory}
	l.FillDefaults()
	return l
}

// check checks what was written, and changes nothing.
func (i *Identify) check() error {
	limits, proofs := i.limits(), i.Identity
	proofs.FillDefaults()
	_, err := gateway.Callers(i.Callers, false, nil)
	if err != nil {
		err = fmt.Errorf("callers: %w", err)
	}
	return cmp.Or(conf.BasePath(i.BasePath), limits.Check(), err, proofs.Check())
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
