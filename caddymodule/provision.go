// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/front/httpfront"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Provision sets up the handler.
func (g *Gateway) Provision(ctx caddy.Context) error {
	if err := g.provision(ctx); err != nil {
		return fmt.Errorf("%s%w", g.subject(), err)
	}
	return nil
}

// subject is the beginning of an error about the handler.
func (g *Gateway) subject() string {
	title := g.title()
	if title == "" || strings.Contains(title, "@") { // of a URL with credentials
		return ""
	}
	return title + ": "
}

func (g *Gateway) provision(ctx caddy.Context) error {
	g.fillDefaults()
	if err := g.check(); err != nil {
		return err
	}
	app, err := ctx.App("aip")
	if err != nil {
		return err
	}
	if err := g.findAIC(ctx, app.(*App)); err != nil {
		return err
	}
	if err := app.(*App).pki.TrustNoLocalCA(ctx); err != nil {
		return err
	}
	g.log = slog.New(doctor.Advising(ctx.Slogger().Handler(), g.title)).With("partner", g.name(), "agent", g.Agent.Name())
	if err := app.(*App).active.Load(ctx, g.AIC); err != nil {
		return err
	}
	if server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok {
		server.RegisterConnContext(httpfront.WithConnection)
		if !slices.ContainsFunc(app.(*App).members, func(o *Gateway) bool { return o.server == server }) {
			server.RegisterConnState(processPKI.NoteHandshake)
			server.RegisterOnStop(waitForLoops)
			// Without all its servers, a configuration does not come in force: its calls wait no longer.
			server.RegisterOnShutdown(app.(*App).configuration.Drain)
		}
		g.server, g.logsAccess = server, server.Logs != nil
		g.logsCredentials = g.logsAccess && server.Logs.ShouldLogCredentials
		g.trusted = doctor.TrustFiles(server.TLSConnPolicies...)
		if err := app.(*App).judgeServers(ctx); err != nil {
			return err
		}
	}
	config, err := g.prepare(app.(*App))
	if err != nil {
		return err
	}
	config.HTTP2 = http2Of(ctx)
	config.Cards.Dates = dates{ctx.Storage()}
	if config.Guard.Mode == identity.Off {
		g.log.Warn("identity is off: senderId is believed without proof; use this for development only")
	}
	g.warnWithoutClientAuth(ctx, config.Guard.Mode)
	g.warnOfServerWithoutAIC(ctx)
	g.warnOfLoggedSecrets()
	if len(g.Agent.Roots) > 0 {
		agents.WarnOfOrphans(g.log, config.Agent.AUN.Roots)
	}
	if g.gateway, err = gateway.New(config); err != nil {
		return fmt.Errorf("agent: %w", doctor.Advised(err))
	}
	g.callers.Log, g.callers.BesideCertificate = g.log, g.aac != nil
	g.front = httpfront.New(g.gateway, httpfront.Config{
		Authenticate: joined(g.callers, g.app.identities),
		Proofs:       g.Identity.Proofs(g.aac != nil),
		Challenges:   g.Identity.Challenges(config.Callers),
		BodyTimeout:  bodyTimeout,
		Heartbeat:    time.Duration(g.Heartbeat),
		WriteTimeout: time.Duration(g.WriteTimeout),
		TakeOver:     g.takeOver(),
		Loop:         passes,
		Stripped:     stripped,
		Healthy:      g.healthy,
		Log:          g.log,
	})
	return g.app.add(g)
}

// prepare checks the settings together with those of the app, reads what they name, and returns the configuration of
// the gateway.
func (g *Gateway) prepare(app *App) (c gateway.Config, err error) {
	g.app = app
	if err := g.checkAUN(); err != nil {
		return c, err
	}
	if g.Group != nil {
		if err := g.Group.provision(g.presenter(app.Certificates)); err != nil {
			return c, err
		}
	}
	if c, err = g.config(); err != nil {
		return c, err
	}
	g.callers, err = g.Identity.Authenticator(&app.pki, &process.TokenKeys)
	return c, err
}

// logReady logs that the Partner has begun its work, once for each configuration; where the store has several shards,
// with what was resumed in the first one.
func (g *Gateway) logReady(resumed int) {
	if g.ready.Swap(true) {
		if resumed > 0 {
			g.log.Info("turns are resumed in a shard that was gained", "resumed", resumed)
		}
		return
	}
	g.log.Info("the Partner is ready", "dialect", g.Agent.Dialect, "callers", strings.Join(g.Callers, " "),
		"path", g.BasePath+"/", "identity", g.Identity.Mode,
		"store", strings.TrimSpace(store.NameOf(g.app.store)+" "+g.app.store.Location()), "resumed", resumed)
}

// http2Of returns over which connections the server of a site speaks HTTP/2.
func http2Of(ctx caddy.Context) gateway.HTTP2 {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return gateway.HTTP2{}
	}
	return gateway.HTTP2{
		TLS:   len(server.Protocols) == 0 || slices.Contains(server.Protocols, "h2"),
		Plain: slices.Contains(server.Protocols, "h2c"),
	}
}

// takeOverAfter is the age of a stream from which on it leaves its request when it rests.
const takeOverAfter = 500 * time.Millisecond

// takeOver returns how streams outlive their requests.
func (g *Gateway) takeOver() httpfront.TakeOver {
	return httpfront.TakeOver{After: takeOverAfter, Passes: passes, Begin: g.app.configuration.TakeOver,
		Log: g.app.access.Of}
}

// defaultCallers are the dialects of callers where none is named: both versions of AIP, which the body tells apart.
var defaultCallers = []string{"aip", "aip/2"}

func (g *Gateway) fillDefaults() {
	if len(g.Callers) == 0 {
		g.Callers = slices.Clone(defaultCallers)
		if accept := g.Identity.Accept; accept["aip"] != nil && accept["aip/2"] == nil {
			accept["aip/2"] = accept["aip"] // else no caller of it might be able to prove who it is
		}
	}
	g.Identity.FillDefaults()
	conf.OrDefault(&g.Heartbeat, caddy.Duration(15*time.Second))
	conf.OrDefault(&g.WriteTimeout, caddy.Duration(30*time.Second))
	g.Agent.FillDefaults()
	g.Card.FillDefaults()
	g.Timeouts.FillDefaults()
	g.Limits.FillDefaults()
	g.Group.fillDefaults()
	g.BasePath = strings.TrimSuffix(g.BasePath, "/")
}

// check finds mistakes in the configuration before anything is made of it. It brings names into their canonical form.
func (g *Gateway) check() error {
	if g.Completion != "" && g.Completion != completionAuto && g.Completion != completionConfirm {
		return fmt.Errorf("completion: it is %q, but must be auto or confirm", g.Completion)
	}
	if err := g.checkRegistered(); err != nil {
		return err
	}
	if g.AIC != "" {
		aic, err := conf.AIC("aic", g.AIC)
		if err != nil {
			return fmt.Errorf("%w; make one with: caddy aip aic make", err)
		}
		g.AIC = string(aic)
	}
	if err := conf.BasePath(g.BasePath); err != nil {
		return err
	}
	if g.Heartbeat < caddy.Duration(time.Second) {
		return fmt.Errorf("heartbeat: %s is too short; use a second or more", time.Duration(g.Heartbeat))
	}
	if g.WriteTimeout < caddy.Duration(time.Second) {
		return fmt.Errorf("write_timeout: %s is too short; use a second or more", time.Duration(g.WriteTimeout))
	}
	named := g.AIC != "" || g.registered // the registry assigns it later
	return cmp.Or(g.checkTitle(), conf.PublicURL("public_url", g.PublicURL), g.checkAID(),
		g.Identity.Check(), g.Agent.Validate(), g.checkCard(), g.Timeouts.Check(), g.Limits.Check(), g.checkCallers(),
		g.Group.check(named, g.Callers), g.AAC.check(named, g.Identity.Mode, g.Group != nil), g.checkPolicy())
}

// checkWritten checks what stands in a Caddyfile, and changes nothing.
func (g *Gateway) checkWritten() error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	var c Gateway
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	c.fillDefaults()
	return c.check()
}

// checkCallers checks who may call, and by which dialects.
func (g *Gateway) checkCallers() error {
	callers, err := gateway.Callers(g.Callers, g.Completion == completionConfirm, g.sender)
	if err != nil {
		return fmt.Errorf("callers: %w", err)
	}
	_, err = g.guard(callers)
	return err
}

// guard returns the Guard of callers of some dialects.
func (g *Gateway) guard(callers []translate.Server) (*identity.Guard, error) {
	var allow []identity.AIC
	for _, s := range g.Allow {
		aic, err := conf.AIC("allow", s)
		if err != nil {
			return nil, err
		}
		allow = append(allow, aic)
	}
	guard := g.Identity.Guard(callers, allow)
	for _, dialect := range slices.Sorted(maps.Keys(guard.Proofs)) {
		if len(guard.Proofs[dialect]) == 0 && guard.Mode == identity.Required {
			return nil, fmt.Errorf("identity: no caller of %s could prove who it is: that dialect accepts %s; configure one of "+
				"them, or say what else it accepts, such as accept %[1]s keys", dialect,
				strings.Join(g.Identity.Accepts(dialect), " and "))
		}
	}
	return guard, nil
}

// bodyTimeout is how long a caller may take to send a request's body.
const bodyTimeout = 30 * time.Second

// memoryPatience is how long a call waits for memory. Callers on the reference implementation of AIP give up at 30 s.
const memoryPatience = 20 * time.Second

// streamPatience is how long a stream waits for memory, as a multiple of write_timeout: slow readers hold it for that
// long.
const streamPatience = 10

// config returns the configuration of the gateway.
func (g *Gateway) config() (c gateway.Config, err error) {
	callers, err := gateway.Callers(g.Callers, g.Completion == completionConfirm, g.sender)
	if err != nil {
		return c, fmt.Errorf("callers: %w", err)
	}
	guard, err := g.guard(callers)
	if err != nil {
		return c, err
	}
	g.leaders = guard
	var judge pki.Judge
	if g.Agent.TLS.Revocation {
		if len(g.app.pki.Revocations()) == 0 {
			return c, errors.New("agent: revocation in tls needs the global option aip { revocation { ... } }")
		}
		judge = g.app.configuration.Trust.JudgeServer
	}
	agent, err := g.Agent.Connection(g.app.AUN.client(), g.presenter(g.app.Certificates), judge)
	if err != nil {
		return c, fmt.Errorf("agent: %w", err)
	}
	if err := g.app.Find.FindAgent(&g.Agent, &agent); err != nil {
		return c, fmt.Errorf("agent: %w", err)
	}
	actor := ""
	if g.AIC != "" {
		actor = "agent:" + g.AIC
	}
	if agent.HTTP.Introducer, err = g.Agent.Introducer(g.app.pki.Issuer, actor, g.log); err != nil {
		return c, err
	}
	agent.Name = g.Agent.Name()
	agent.Sender = cmp.Or(g.AIC, "aip-gateway")
	agent.CallbackURL = g.app.Notify.Callback
	agent.Turns.Logger = g.log
	agent.Owner = g.app.identities.LeaderAID
	agent.AUN.Log = logOf("aip") // its connection outlives the configuration
	if g.policy, err = g.newPolicy(); err != nil {
		return c, err
	}
	if g.aac, err = g.newAAC(); err != nil {
		return c, err
	}
	var tokens gateway.AAC
	if g.aac != nil {
		tokens = g.aac
	}
	var decides gateway.Policy
	if g.policy != nil {
		decides = g.policy
	}
	cards, err := g.cards()
	if err != nil {
		return c, err
	}
	events, bytes := g.app.store.TaskLimits()
	return gateway.Config{
		Process: &process.Process,
		Ready:   g.app.configuration.Ready,
		Partner: partner.Config{
			Name:        g.name(),
			Terms:       g.Timeouts.Terms(),
			MaxAwaiting: g.Timeouts.MaxAwaiting(),
			MaxEvents:   events,
			MaxBytes:    bytes,
			MaxTasks:    g.Limits.TasksPerLeader,
			Recovered:   g.logReady,
			Stopping:    process.Exiting.Done(),
			Drain:       time.Duration(g.app.Drain),
		},
		Agent:          agent,
		AIC:            g.AIC,
		Name:           g.cardName(),
		Cards:          cards,
		Base:           g.BasePath,
		PublicURL:      g.publicURL(),
		Callers:        callers,
		Confirm:        g.Completion == completionConfirm,
		AutoComplete:   g.Completion == completionAuto,
		Guard:          guard,
		Schemes:        g.Identity.Schemes(callers),
		Revocation:     &g.app.configuration.Trust,
		Inactive:       g.inactive,
		Issues:         g.issues,
		InForce:        process.Gateways,
		AAC:            tokens,
		Policy:         decides,
		Watch:          g.watch(),
		Blocking:       time.Duration(g.Timeouts.Blocking),
		Limits:         jsonrpc.Limits{Bytes: g.Limits.Body, Depth: jsonrpc.DefaultDepth},
		Memory:         limit.Limits{Total: g.Limits.Memory, PerLeader: g.Limits.MemoryPerLeader()},
		MemoryPatience: memoryPatience,
		Streaming: gateway.Streaming{
			Patience:     streamPatience * time.Duration(g.WriteTimeout),
			Max:          g.Limits.Streams,
			MaxPerLeader: g.Limits.StreamsPerLeader,
			Drain:        g.app.configuration.Draining,
			Exit:         process.Exiting,
			DrainFor:     time.Duration(g.app.Drain),
		},
		Groups: g.Group != nil && g.AIC != "",
		Log:    g.log,
	}, nil
}

// watch returns what reports calls; nil if nothing of them is reported.
func (g *Gateway) watch() func(*gateway.Answered) {
	if a := g.app.AMP; a == nil || g.AIC == "" || slices.Equal(a.Records, []string{string(amp.Heartbeat)}) {
		return nil
	}
	return func(of *gateway.Answered) { g.app.configuration.Report(g.AIC, of) }
}
