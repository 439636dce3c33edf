// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/shown"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("aip", parseApp)
	httpcaddyfile.RegisterDirective("aip_gateway", parseDirective)
	// Before all that answers every request: the gateway passes on what is not its own.
	httpcaddyfile.RegisterDirectiveOrder("aip_gateway", httpcaddyfile.Before, "respond")
}

// parseApp parses the global option. Syntax:
//
//	aip {
//		store <driver>
//		drain <duration>
//		identities {
//			<aic> <name>...
//		}
//		issuer <name> { ... }
//		notify { ... }
//		traces {
//			link <url>
//		}
//		aun { ... }
//		revocation { ... }
//		certificates <directory> { ... }
//		registry <url> { ... }
//		find { ... }
//		discovery <url>... { ... }
//		amp [<directory>] { ... }
//	}
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("the aip option is given twice")
	}
	app := new(App)
	read := func(p *conf.Parser, a *App) { a.readFrom(p) }
	if err := conf.ReadChecked(d, app, new(App), read, (*App).checkWritten); err != nil {
		return nil, err
	}
	value, err := json.Marshal(app)
	if err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "aip", Value: value}, nil
}

// readFrom reads the option from its name on.
func (a *App) readFrom(p *conf.Parser) {
	if p.Next(); p.NextArg() {
		p.Keep(p.ArgErr())
		return
	}
	p.Block("aip", conf.Options{
		"store":      a.readStore(p),
		"notify":     notifyOption(p, &a.Notify),
		"drain":      p.Duration(&a.Drain),
		"identities": func() { readIdentitySets(p, &a.Identities) },
		"aun":        aunOption(p, &a.AUN),
		"issuer":     pki.IssuerOption(p, &a.Issuer),
		"revocation": pki.RevocationOption(p, &a.Revocation),
		"amp":        ampOption(p, &a.AMP),
		"discovery":  discoveryOption(p, &a.Discovery),
		"find":       findOption(p, &a.Find),
		"registry":   registryOption(p, &a.Registry),

		"certificates": pki.CertificatesOption(p, &a.Certificates),
		"traces":       p.Section(conf.Options{"link": p.Word(&a.Traces.Link)}),
	})
}

// notifyOption returns what reads the option. Syntax:
//
//	notify {
//		attempts        <n>
//		timeout         <duration>
//		allow_networks  <cidr>...
//		certificate_for <receiver>...
//		signing_key     <key>
//		callback        <url>
//		keep_bodies
//	}
func notifyOption(p *conf.Parser, n *Notify) func() {
	return p.Section(conf.Options{
		"attempts":        p.Number(&n.Attempts),
		"timeout":         p.Duration(&n.Timeout),
		"allow_networks":  p.Words(&n.AllowNetworks),
		"certificate_for": p.Words(&n.CertificateFor),
		"signing_key": func() {
			var key string
			p.Word(&key)()
			n.SigningKeys = append(n.SigningKeys, key)
		},
		"callback":    p.Word(&n.Callback),
		"keep_bodies": p.Flag(&n.KeepBodies),
	})
}

// parseDirective parses the directive. Syntax:
//
//	aip_gateway [<matcher>] [[<dialect>] <url>] {
//		agent [<dialect>] <url> | aip <aic> | aun <aid> [<wss-url>] { ... }
//		name          <name>
//		aic           <aic>|registered
//		aid           <aid>
//		public_url    <url>
//		base_path     <path>
//		callers       <dialect>...
//		completion    auto|confirm
//		allow         <aic>...
//		heartbeat     <duration>
//		write_timeout <duration>
//		identity      [required|optional|off] { ... }
//		aac { ... }
//		policy { ... }
//		quota <name> { ... }
//		timeouts {
//			response            <duration>
//			blocking            <duration>
//			awaiting_input      <duration>
//			awaiting_completion <duration>
//		}
//		limits {
//			body               <size>
//			streams            <n>
//			streams_per_leader <n>
//			tasks_per_leader   <n>
//			memory             <size>
//		}
//		card { ... }
//		group { ... }
//	}
//
// A path matcher also says where the Partner is mounted.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	g := new(Gateway)
	return mounted(h, g, &g.BasePath)
}

// mounted reads the directive of a handler for a Partner. A path in its matcher says where the Partner is mounted,
// unless the handler's options do.
func mounted(h httpcaddyfile.Helper, m conf.Directive, base *string) ([]httpcaddyfile.ConfigValue, error) {
	if h.Next(); h.NextArg() && strings.HasPrefix(h.Val(), "/") {
		*base = strings.TrimRight(h.Val(), "*/")
	}
	h.Reset()
	h.Next()
	matcher, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	if err := m.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return h.NewRoute(matcher, m), nil
}

// UnmarshalCaddyfile sets up the handler from a Caddyfile, and checks what can be known without reading other files.
func (g *Gateway) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return conf.ReadChecked(d, g, &Gateway{BasePath: g.BasePath}, func(p *conf.Parser, g *Gateway) { g.read(p) },
		(*Gateway).checkWritten)
}

// read reads the directive from its name on.
func (g *Gateway) read(p *conf.Parser) {
	p.Of = g.subject
	if p.Next(); p.NextArg() {
		readAgentArgs(p, &g.Agent, p.Val())
	}
	t, l := &g.Timeouts, &g.Limits
	p.Block("aip_gateway", conf.Options{
		"agent":         func() { readAgent(p, &g.Agent) },
		"name":          p.Word(&g.Name),
		"aic":           p.Word(&g.AIC),
		"aid":           p.Word(&g.AID),
		"base_path":     p.Word(&g.BasePath), // more explicit than the matcher
		"callers":       p.Words(&g.Callers),
		"identity":      identityOption(p, &g.Identity),
		"allow":         p.Words(&g.Allow),
		"aac":           aacOption(p, &g.AAC),
		"policy":        policyOption(p, &g.Policy),
		"quota":         quotaOption(p, &g.Quotas),
		"heartbeat":     p.Duration(&g.Heartbeat),
		"write_timeout": p.Duration(&g.WriteTimeout),
		"completion":    p.Word(&g.Completion),
		"public_url":    p.Word(&g.PublicURL),
		"card":          cardOption(p, &g.Card),
		"group":         groupOption(p, &g.Group),
		"timeouts": p.Section(conf.Options{
			"response":            p.Duration(&t.Response),
			"blocking":            p.Duration(&t.Blocking),
			"awaiting_input":      p.Duration(&t.AwaitingInput),
			"awaiting_completion": p.Duration(&t.AwaitingCompletion),
		}),
		"limits": p.Section(conf.Options{
			"body":               conf.Size(p, &l.Body),
			"streams":            p.Number(&l.Streams),
			"streams_per_leader": p.Number(&l.StreamsPerLeader),
			"tasks_per_leader":   p.Number(&l.TasksPerLeader),
			"memory":             conf.Size(p, &l.Memory),
		}),
	})
	if g.Agent.Dialect == "" {
		p.Fail("no agent is given; write aip_gateway <dialect> <url>, or agent <dialect> <url> in its block")
	}
}

// cardOption returns what reads the option. Syntax:
//
//	card {
//		signatures         drop|keep|refuse
//		acs                01.00|02.01|02.02
//		version            <text>
//		organization       <name>
//		organization_url   <url>
//		department         <name>
//		country            <code>
//		license            <text>
//		ca_challenge_url   <url>
//		requested_validity <days>
//		registered         <file>
//	}
func cardOption(p *conf.Parser, c *CardConfig) func() {
	return p.Section(conf.Options{
		"signatures":         p.Word(&c.Signatures),
		"acs":                p.Word(&c.ACS),
		"version":            p.Word(&c.Version),
		"requested_validity": p.Number(&c.RequestedValidity),
		"registered":         p.Word(&c.Registered),
		"organization":       p.Word(&c.Organization),
		"organization_url":   p.Word(&c.OrganizationURL),
		"department":         p.Word(&c.Department),
		"country":            p.Word(&c.Country),
		"license":            p.Word(&c.License),
		"ca_challenge_url":   p.Word(&c.CAChallengeURL),
	})
}

// readAgent reads the option. Syntax:
//
//	agent [<dialect>] <url> | aip <aic> | aun <aid> [<wss-url>] {
//		card      <url>|<file>
//		header_up <name> <value>
//		timeout   <duration>
//		retry_for <duration>
//		resend    never [after <duration>] | always [after <duration>] | after <duration>
//		streams   auto|on|off
//		max_runs  <n>
//		max_runs_per_leader <n>
//		check       <duration>
//		expose      none|status|product
//		cancel_path <path>
//		identity    <file>
//		roots       <file>...
//		idle_window <duration>
//		caller {
//			headers
//			jwt {
//				audience <name>
//				header   <name>
//			}
//		}
//		tls {
//			ca          <file>...
//			client_cert <cert> <key> | aip
//			server_name <name>
//			aic         <AIC>...
//			verify      aic|name|both
//			revocation
//		}
//	}
func readAgent(p *conf.Parser, a *AgentConfig) {
	switch short, args := a.Dialect != "", p.NextArg(); { // short: it stands behind aip_gateway
	case short && args:
		p.Fail("the agent is given twice; an aip_gateway fronts one. Behind aip_gateway or behind agent, write it once")
		return
	case args:
		readAgentArgs(p, a, p.Val())
	case !short:
		p.Fail("agent needs a dialect and a URL: agent a2a/legacy http://127.0.0.1:9101")
		return
	}
	known := conf.Options{
		"header_up": p.Pair("a name and a value", func(name, value string) {
			if a.HeaderUp == nil {
				a.HeaderUp = make(http.Header)
			}
			a.HeaderUp.Add(name, value)
		}),
		"card":                p.Word(&a.Card),
		"caller":              p.Section(a.Caller.options(p)),
		"timeout":             p.Duration(&a.Timeout),
		"retry_for":           conf.Optional(p, &a.RetryFor, p.Duration),
		"streams":             p.Word(&a.Streams),
		"max_runs":            p.Number(&a.MaxRuns),
		"max_runs_per_leader": p.Number(&a.MaxRunsPerLeader),
		"check":               p.Duration(&a.Check),
		"resend":              a.Resend.parse(p),
		"tls": p.Section(a.TLS.options(p, conf.Options{
			"ca":          p.Words(&a.TLS.CA),
			"client_cert": pki.ClientCertOption(p, &a.TLS.Cert, &a.TLS.Key, &a.TLS.Obtained),
			"server_name": p.Word(&a.TLS.ServerName),
			"revocation":  p.Flag(&a.TLS.Revocation),
		})),
	}
	for _, s := range a.own() {
		maps.Copy(known, s.options(p))
	}
	p.Block("agent", known)
}

// readAgentArgs parses the arguments of an agent, of which the first is its dialect, or its URL if the dialect is a2a.
func readAgentArgs(p *conf.Parser, a *AgentConfig, first string) {
	if strings.Contains(first, ":") || len(shown.Placeholders(first)) > 0 { // no dialect has that
		a.Dialect, a.URL = gateway.A2A, first
		if p.NextArg() {
			p.Fail("agent takes a dialect and a URL, in this order, but " + strconv.Quote(p.Val()) + " follows the URL")
		}
		return
	}
	if a.Dialect = first; a.dialect().Transport == gateway.OverAUN {
		readAUNArgs(p, a)
		return
	}
	if !p.NextArg() {
		p.Fail("agent " + first + " needs a URL, such as http://127.0.0.1:9101")
		return
	}
	if a.URL = p.Val(); a.dialect().Found() && !strings.ContainsAny(a.URL, ":/{") {
		a.URL, a.AIC = "", a.URL
	}
	if p.NextArg() {
		p.Fail("agent takes a dialect and a URL, but there is also " + strconv.Quote(p.Val()))
	}
}

// Interface guards.
var (
	_ caddyfile.Unmarshaler = (*Gateway)(nil)
)
