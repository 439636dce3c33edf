// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

func init() { caddy.RegisterModule(new(Gateway)) }

// Gateway makes an agent an AIP Partner: Leaders command it over JSON-RPC, and the gateway keeps the life-cycle
// that the agent does not have.
//
// It answers POST on the path it is mounted at, and on rpc under it, and passes all other paths on to the next
// handler. Where none answers either, a path under the mount point is a 404 that says what is there.
type Gateway struct {
	// The agent that is fronted.
	Agent AgentConfig `json:"agent"`

	// The AIC that this Partner answers under. Its tasks are filed under it, so it should be set before an
	// agent moves. Default: none; tasks are filed under the agent's URL.
	AIC string `json:"aic,omitempty"`

	// The public URL of the place where the Partner is mounted, for every URL that is told to others. Default: the
	// scheme and host of the request, and base_path.
	PublicURL string `json:"public_url,omitempty"`

	// What the Partner's cards tell.
	Card CardConfig `json:"card,omitzero"`

	// The path under which the Partner is mounted. Default: none, as behind handle_path; in a Caddyfile, that
	// of the directive's path matcher.
	BasePath string `json:"base_path,omitempty"`

	// The dialects of those who may call: aip, aip/2, a2a (all versions of it), a2a/1.0, a2a/0.3 and a2a/legacy.
	// Default: aip.
	Callers []string `json:"callers,omitempty"`

	// What is asked of a caller: required (a verified client certificate with an AIC, which senderId must
	// equal), optional (without a certificate, a caller is kept apart from those with one) or off (senderId is
	// believed; for development only). Default: required.
	Identity string `json:"identity,omitempty"`

	// The AICs of the only Leaders that may call. Default: every Leader whose certificate verifies.
	Allow []string `json:"allow,omitempty"`

	// What becomes of a task that its agent has finished, for callers whose dialect has no word for that: auto
	// (it is completed at once) or confirm (it asks for input, so that its caller can go on with it). AIP's Leaders
	// say themselves. Default: auto.
	Completion string `json:"completion,omitempty"`

	// What a Leader may leave open when it starts a task.
	Timeouts Timeouts `json:"timeouts,omitzero"`

	// What one request, or one Leader, may ask of the gateway.
	Limits Limits `json:"limits,omitzero"`

	// How long a stream may be silent before a comment is sent, so that nobody on the way takes it for dead.
	// Default: 15s.
	Heartbeat caddy.Duration `json:"heartbeat,omitempty"`

	// How long the caller of a stream, or of an answer of more than 64 KiB, may take nothing in of what it is sent
	// before its connection is closed. It can come back; a stream goes on where it was. Default: 30s.
	WriteTimeout caddy.Duration `json:"write_timeout,omitempty"`

	app   *App
	log   *slog.Logger
	front *gateway.Gateway // nil before it is provisioned
}

// AgentConfig says how the agent is reached.
type AgentConfig struct {
	// What the agent speaks: a2a (which version is found out, by its card and by asking), a2a/1.0, a2a/1.0-rest,
	// a2a/0.3 (and 0.2), a2a/legacy (tasks/send, A2A before 0.2), aip or aip/2.
	Dialect string `json:"dialect"`

	// Where the agent answers, or, for a2a, where its card lies. http and https.
	URL string `json:"url"`

	// Header fields that every request to the agent carries, such as its credentials. Values may hold
	// placeholders, {env.TOKEN} for one. They never reach a log.
	HeaderUp http.Header `json:"header_up,omitempty"`

	// How the agent proves who it is, and who the gateway is to it, for https.
	TLS AgentTLS `json:"tls,omitzero"`

	// How long one run may be silent before it counts as failed. Default: 5m.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// For how long a start or continue that the agent has not got, because it refuses connections or they break, is sent
	// again before the task fails. 0 is for not at all. Default: 10s.
	RetryFor *caddy.Duration `json:"retry_for,omitempty"`

	// How many requests the agent is sent at once, and so how many connections to it there are. An eighth of them is kept
	// for questions and cancels. Further starts and continues wait, up to eight times as many; then they are refused. At
	// least 2. Default: a quarter of the files that the process may open, 16 to 16384.
	MaxRuns int `json:"max_runs,omitempty"`
}

// Timeouts are the defaults for what a Leader may set itself when it starts a task.
type Timeouts struct {
	// How long a start or continue waits for its result. After it, the task is answered as it is then, and
	// the work goes on. Default: 25s, because clients on the reference implementation of AIP give up at 30s.
	Response caddy.Duration `json:"response,omitempty"`

	// How long a call of A2A that waits for its task (a message without blocking false, or returnImmediately) waits at
	// most. After it, the task is answered as it is then, and the work goes on. Default: 10m.
	Blocking caddy.Duration `json:"blocking,omitempty"`

	// How long a task waits for input before it is canceled. Default: 24h.
	AwaitingInput caddy.Duration `json:"awaiting_input,omitempty"`

	// How long a finished task waits for the Leader's word before it is completed. Default: 24h.
	AwaitingCompletion caddy.Duration `json:"awaiting_completion,omitempty"`

	// The longest that a task waits for its Leader, whatever the Leader asks for: a longer awaitingInputTimeout or
	// awaitingCompletionTimeout is shortened to it. Default: 30d.
	MaxAwaiting caddy.Duration `json:"max_awaiting,omitempty"`
}

// Limits bound what callers may ask for.
type Limits struct {
	// The size of a request's body, in bytes. Default: 4 MiB.
	Body int `json:"body,omitempty"`

	// How deep objects and arrays may be nested in a request. Default: 64.
	Depth int `json:"depth,omitempty"`

	// How many streams may be open at once, of all Leaders and all handlers together. Default: 20000.
	Streams int `json:"streams,omitempty"`

	// How many streams one Leader may have open at once. Default: 1000.
	StreamsPerLeader int `json:"streams_per_leader,omitempty"`

	// How many unfinished tasks a Leader may have here. Default: 100000.
	TasksPerLeader int `json:"tasks_per_leader,omitempty"`

	// How many bytes of memory the requests, answers, streams and running tasks of all Leaders and all handlers may
	// hold together. Default: 192 MiB, or a quarter of what the process may use (GOMEMLIMIT) where that is less.
	Memory int64 `json:"memory,omitempty"`

	// How many of these bytes one Leader may hold. Default: a quarter of memory.
	MemoryPerLeader int64 `json:"memory_per_leader,omitempty"`
}

// maxURL is how long an agent's URL may be, in bytes: it is part of every log's name.
const maxURL = 400

// bodyTimeout is how long a caller may take to send a request's body.
const bodyTimeout = 30 * time.Second

// memoryPatience is how long a call waits for memory. Callers on the reference implementation of AIP give up at 30 s.
const memoryPatience = 20 * time.Second

// streamPatience is how many times write_timeout a stream waits for memory: others hold it while they take in what they are
// sent, or until they are cut.
const streamPatience = 10

// process is what all configurations share.
var process gateway.Process

// defaultMemory returns the default of limits.memory, in bytes.
func defaultMemory() int64 {
	const most = 192 << 20
	return min(most, debug.SetMemoryLimit(-1)/4) // Caddy sets the limit by the cgroup's or the system's memory
}

func init() {
	// Caddy's admin API serves it under /debug/vars.
	expvar.Publish("aip", expvar.Func(func() any {
		return map[string]int64{"memory": process.Memory.Total(), "streams": int64(process.Streams.Count())}
	}))
}

// CaddyModule returns the Caddy module information.
func (*Gateway) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.aip_gateway", New: func() caddy.Module { return new(Gateway) }}
}

// Provision sets up the handler.
func (g *Gateway) Provision(ctx caddy.Context) error {
	g.log = ctx.Slogger()
	g.fillDefaults()
	if err := g.check(); err != nil {
		return err
	}
	guard, err := g.guard()
	if err != nil {
		return err
	}
	if guard.Mode == identity.Off {
		g.log.Warn("identity is off: every caller is believed to be the Leader it claims to be; do not use this outside development",
			"agent", g.name())
	}
	repl := caddy.NewReplacer()
	header := make(http.Header, len(g.Agent.HeaderUp))
	for field, values := range g.Agent.HeaderUp {
		for _, v := range values {
			value, err := repl.ReplaceOrErr(v, true, true)
			if err != nil {
				return fmt.Errorf("agent: header_up %s has a placeholder without a value", field)
			}
			header.Add(field, value)
		}
	}
	callers, err := gateway.Callers(g.Callers, g.Completion == completionConfirm, g.AIC)
	if err != nil {
		return fmt.Errorf("callers: %w", err)
	}
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	g.app = app.(*App)
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		server.RegisterConnContext(gateway.WithConnection)
	}
	trust, err := g.Agent.TLS.config(repl)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if g.front, err = gateway.New(g.config(guard, callers, header, trust)); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return g.app.add(g)
}

// The ways to complete a task for callers whose dialect has no word for it.
const (
	completionAuto    = "auto"
	completionConfirm = "confirm"
)

func (g *Gateway) fillDefaults() {
	if len(g.Callers) == 0 {
		g.Callers = []string{"aip"}
	}
	if g.Identity == "" {
		g.Identity = string(identity.Required)
	}
	if g.Completion == "" {
		g.Completion = completionAuto
	}
	orDuration(&g.Agent.Timeout, 5*time.Minute)
	orInt(&g.Agent.MaxRuns, runsByFiles())
	if g.Agent.RetryFor == nil {
		g.Agent.RetryFor = new(caddy.Duration(10 * time.Second))
	}
	orDuration(&g.Timeouts.Response, 25*time.Second)
	orDuration(&g.Timeouts.Blocking, 10*time.Minute)
	orDuration(&g.Timeouts.AwaitingInput, 24*time.Hour)
	orDuration(&g.Timeouts.AwaitingCompletion, 24*time.Hour)
	orDuration(&g.Timeouts.MaxAwaiting, 30*24*time.Hour)
	orDuration(&g.Heartbeat, 15*time.Second)
	orDuration(&g.WriteTimeout, 30*time.Second)
	orInt(&g.Limits.Streams, 20_000)
	orInt(&g.Limits.StreamsPerLeader, 1000)
	orInt(&g.Limits.Body, jsonrpc.DefaultBytes)
	orInt(&g.Limits.Depth, jsonrpc.DefaultDepth)
	orInt(&g.Limits.TasksPerLeader, 100_000)
	orInt(&g.Limits.Memory, defaultMemory())
	orInt(&g.Limits.MemoryPerLeader, max(g.Limits.Memory/4, min(g.Limits.Memory, minMemory(g.Limits.Body))))
	g.BasePath = strings.TrimSuffix(g.BasePath, "/")
	g.AIC = strings.ToUpper(g.AIC)
}

func orDuration(d *caddy.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = caddy.Duration(otherwise)
	}
}

func orInt[T int | int64](n *T, otherwise T) {
	if *n == 0 {
		*n = otherwise
	}
}

// check finds what is wrong with the configuration, before anything is made of it.
func (g *Gateway) check() error {
	if err := gateway.CheckAgentDialect(g.Agent.Dialect); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	u, err := url.Parse(g.Agent.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("agent: %q is no http or https URL", g.Agent.URL)
	}
	if len(g.Agent.URL) > maxURL {
		return fmt.Errorf("agent: the URL has %d bytes, but must have no more than %d", len(g.Agent.URL), maxURL)
	}
	if u.User != nil {
		return errors.New("agent: put credentials into header_up, not into the URL, which is logged")
	}
	if err := checkPublicURL("public_url", g.PublicURL); err != nil {
		return err
	}
	if err := g.Card.provision(); err != nil {
		return err
	}
	if g.Completion != completionAuto && g.Completion != completionConfirm {
		return fmt.Errorf("completion: it is %q, but must be auto or confirm", g.Completion)
	}
	if g.AIC != "" {
		if _, err := identity.ParseAIC(g.AIC); err != nil {
			return fmt.Errorf("aic: %w", err)
		}
	}
	if g.BasePath != "" && !strings.HasPrefix(g.BasePath, "/") {
		return fmt.Errorf("base_path: %q does not begin with a slash", g.BasePath)
	}
	if g.Agent.MaxRuns < 2 {
		return fmt.Errorf("agent: max_runs is %d, but must be at least 2", g.Agent.MaxRuns)
	}
	if *g.Agent.RetryFor < 0 {
		return errors.New("agent: retry_for must not be negative; 0 is for not at all")
	}
	if g.Agent.Timeout < 0 || g.Timeouts.Response < 0 || g.Timeouts.Blocking < 0 || g.Timeouts.AwaitingInput < 0 || g.Timeouts.AwaitingCompletion < 0 {
		return errors.New("timeouts must not be negative")
	}
	if t := &g.Timeouts; t.MaxAwaiting < max(t.AwaitingInput, t.AwaitingCompletion) {
		return fmt.Errorf("timeouts: max_awaiting is %s, but must be at least awaiting_input and awaiting_completion", time.Duration(t.MaxAwaiting))
	}
	if g.Heartbeat < caddy.Duration(time.Second) {
		return fmt.Errorf("heartbeat: %s is too short; use a second or more", time.Duration(g.Heartbeat))
	}
	if g.WriteTimeout < caddy.Duration(time.Second) {
		return fmt.Errorf("write_timeout: %s is too short; use a second or more", time.Duration(g.WriteTimeout))
	}
	if g.Limits.Body < 0 || g.Limits.Depth < 0 || g.Limits.Streams < 0 || g.Limits.StreamsPerLeader < 0 || g.Limits.TasksPerLeader < 0 {
		return errors.New("limits must not be negative")
	}
	if g.Limits.Memory < 0 || g.Limits.MemoryPerLeader < 0 {
		return errors.New("limits must not be negative")
	}
	l := &g.Limits
	if least := minMemory(l.Body); l.MemoryPerLeader < least { // or no request of the size of body could be read
		return fmt.Errorf("limits: memory_per_leader is %d bytes, but must be at least %d, twice the size of body",
			l.MemoryPerLeader, least)
	}
	if least := 2 * l.MemoryPerLeader; l.Memory < least { // or one Leader would leave no room for others
		return fmt.Errorf("limits: memory is %d bytes, but must be at least %d, twice memory_per_leader", l.Memory, least)
	}
	return nil
}

// minMemory is the least memory, in bytes, that one Leader needs for requests of up to a size: a request is held twice
// while it is decoded.
func minMemory(body int) int64 { return 2 * (int64(body) + 1) }

func (g *Gateway) guard() (*identity.Guard, error) {
	mode, err := identity.ParseMode(g.Identity)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	guard := &identity.Guard{Mode: mode}
	for _, s := range g.Allow {
		aic, err := identity.ParseAIC(s)
		if err != nil {
			return nil, fmt.Errorf("allow: %w", err)
		}
		guard.Allow = append(guard.Allow, aic)
	}
	return guard, nil
}

// sender is who the gateway is towards an agent that is a Partner itself.
func (g *Gateway) sender() string {
	if g.AIC != "" {
		return g.AIC
	}
	return "aip-gateway"
}

// name is what the Partner's tasks are filed under.
func (g *Gateway) name() string {
	if g.AIC != "" {
		return g.AIC
	}
	return g.Agent.URL
}

// config returns what the gateway is made of.
func (g *Gateway) config(guard *identity.Guard, callers []translate.Server, header http.Header, trust *tls.Config) gateway.Config {
	a := g.app
	return gateway.Config{
		Process: &process,
		Ready:   a.ready,
		Partner: partner.Config{
			Name: g.name(),
			Terms: task.Terms{
				Response:           time.Duration(g.Timeouts.Response),
				AwaitingInput:      time.Duration(g.Timeouts.AwaitingInput),
				AwaitingCompletion: time.Duration(g.Timeouts.AwaitingCompletion),
			},
			MaxAwaiting: time.Duration(g.Timeouts.MaxAwaiting),
			MaxEvents:   a.Store.MaxEvents,
			MaxBytes:    a.Store.MaxBytes,
			MaxTasks:    g.Limits.TasksPerLeader,
			Stopping:    exiting.Done(),
			Drain:       time.Duration(a.Drain),
		},
		Agent: gateway.AgentConfig{
			Dialect:     g.Agent.Dialect,
			Sender:      g.sender(),
			MaxRequests: g.Agent.MaxRuns,
			HTTP: upstream.Config{
				URL:         g.Agent.URL,
				Header:      header,
				TLS:         trust,
				IdleTimeout: time.Duration(g.Agent.Timeout),
				RetryFor:    time.Duration(*g.Agent.RetryFor),
				CallbackURL: a.Notify.Callback,
				Logger:      g.log,
			},
		},
		AIC:            g.AIC,
		Cards:          gateway.Cards(g.Card),
		Base:           g.BasePath,
		PublicURL:      strings.TrimSuffix(g.PublicURL, "/"),
		Callers:        callers,
		Confirm:        g.Completion == completionConfirm,
		Guard:          guard,
		Blocking:       time.Duration(g.Timeouts.Blocking),
		Limits:         jsonrpc.Limits{Bytes: g.Limits.Body, Depth: g.Limits.Depth},
		BodyTimeout:    bodyTimeout,
		Memory:         quota.Limits{Total: g.Limits.Memory, PerLeader: g.Limits.MemoryPerLeader},
		MemoryPatience: memoryPatience,
		Streaming: gateway.Streaming{
			Heartbeat:    time.Duration(g.Heartbeat),
			WriteTimeout: time.Duration(g.WriteTimeout),
			Patience:     streamPatience * time.Duration(g.WriteTimeout),
			Max:          g.Limits.Streams,
			MaxPerLeader: g.Limits.StreamsPerLeader,
			Drain:        a.draining,
			DrainFor:     time.Duration(a.Drain),
		},
		Log: g.log,
	}
}

// ServeHTTP answers what is meant for the Partner and passes the rest on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !g.front.Serves(r) {
		return g.pass(w, r, next)
	}
	g.app.enter()
	defer g.app.leave()
	g.front.ServeHTTP(w, r)
	return nil
}

// unhandled is the variable that Caddy sets where no handler has answered a request.
const unhandled = "unhandled"

// pass lets the next handlers answer a request. If none does, Caddy would answer a path under the mount point by 200
// without a body, and a Leader with a mistyped URL would take that for success.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !g.front.Under(r) {
		return next.ServeHTTP(w, r)
	}
	caddyhttp.SetVar(r.Context(), unhandled, nil)
	asked := r.URL.Path // later handlers may rewrite it
	if err := next.ServeHTTP(w, r); err != nil {
		return err
	}
	if nobody, _ := caddyhttp.GetVar(r.Context(), unhandled).(bool); !nobody {
		return nil
	}
	caddyhttp.SetVar(r.Context(), unhandled, nil)
	mount := g.BasePath
	if original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok {
		if stripped, ok := strings.CutSuffix(original.URL.Path, asked); ok { // by handle_path
			mount = stripped + mount
		}
	}
	g.front.NotFound(w, mount)
	return nil
}

// Cleanup closes what the handler keeps open towards the agent. Calls under way keep their connections.
func (g *Gateway) Cleanup() error {
	if g.front != nil {
		g.front.Close()
	}
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Gateway)(nil)
	_ caddy.CleanerUpper          = (*Gateway)(nil)
	_ caddyhttp.MiddlewareHandler = (*Gateway)(nil)
)
