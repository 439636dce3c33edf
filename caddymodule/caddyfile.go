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
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/gateway"
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
//		store <driver> ...
//		notify {
//			attempts        <n>
//			timeout         <duration>
//			concurrency     <n>
//			allow_networks  <cidr>...
//			certificate_for <receiver>...
//			signing_key     <key>
//			callback        <url>
//			keep_bodies
//		}
//		streams {
//			take_over      on|off
//			release_memory on|off
//		}
//		connections {
//			loop on|off
//		}
//		traces {
//			link <url>
//		}
//		identities {
//			<aic> <aid>
//		}
//		aun { ... }
//		issuer <name> { ... }
//		revocation { ... }
//		amp [<directory>] { ... }
//		discovery <url>... { ... }
//		find { ... }
//		registry <url> { ... }
//		drain <duration>
//	}
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("the aip option is given twice")
	}
	app := new(App)
	if err := readChecked(d, app, new(App), func(p *parser, a *App) { a.readFrom(p) }, (*App).checkWritten); err != nil {
		return nil, err
	}
	value, err := json.Marshal(app)
	if err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "aip", Value: value}, nil
}

// readFrom reads the option from its name on.
func (a *App) readFrom(p *parser) {
	if p.Next(); p.NextArg() {
		p.err = p.ArgErr()
		return
	}
	p.block("aip", options{
		"store":      a.readStore(p),
		"notify":     p.notify(&a.Notify),
		"drain":      p.duration(&a.Drain),
		"identities": func() { p.identities(&a.Identities) },
		"aun":        p.aun(&a.AUN),
		"issuer":     p.issuer(&a.Issuer),
		"revocation": p.revocation(&a.Revocation),
		"amp":        p.amp(&a.AMP),
		"discovery":  p.discovery(&a.Discovery),
		"find":       p.find(&a.Find),
		"registry":   p.registry(&a.Registry),

		"certificates": p.certificates(&a.Certificates),
		"streams": p.section(options{
			"take_over":      p.word(&a.Streams.TakeOver),
			"release_memory": p.word(&a.Streams.ReleaseMemory),
		}),
		"connections": p.section(options{"loop": p.word(&a.Connections.Loop)}),
		"traces":      p.section(options{"link": p.word(&a.Traces.Link)}),
	})
}

func (p *parser) notify(n *Notify) func() {
	return p.section(options{
		"attempts":        p.number(&n.Attempts),
		"timeout":         p.duration(&n.Timeout),
		"concurrency":     p.number(&n.Concurrency),
		"allow_networks":  p.words(&n.AllowNetworks),
		"certificate_for": p.words(&n.CertificateFor),
		"signing_key": func() {
			var key string
			p.word(&key)()
			n.SigningKeys = append(n.SigningKeys, key)
		},
		"callback":    p.word(&n.Callback),
		"keep_bodies": p.flag(&n.KeepBodies),
	})
}

// parseDirective parses the directive. Syntax:
//
//	aip_gateway [<matcher>] [[<dialect>] <url>] {
//		agent [<dialect>] <url> | aip <aic> | aun <aid> [<url>] {
//			header_up <name> <value>
//			timeout   <duration>
//			retry_for <duration>
//			streams   auto|on|off
//			resend    [never|always] [after <duration>]
//			max_runs  <n>
//			max_runs_per_leader <n>
//			check     <duration>
//			expose      none|status|product
//			cancel_path <path>
//			identity    <file>
//			roots       <file>...
//			idle_window <duration>
//			tls {
//				ca          <file>...
//				client_cert <cert> <key>
//				server_name <name>
//				revocation
//			}
//		}
//		name      <name>
//		aic       <aic>|registered
//		aid       <aid>
//		base_path <path>
//		callers   <dialect>...
//		identity  required|optional|off
//		allow     <aic>...
//		aac {
//			issuer         <issuer> [<url>]
//			audience       <name>...
//			require
//			replay         off|refuse
//			algorithms     <algorithm>...
//			leeway         <duration>
//			allow_networks <cidr>...
//			ca             <file>...
//		}
//		policy {
//			allow|deny [<name>] [<condition> <value>...] {
//				aic         <aic>...
//				registrar   <aic>...
//				vendor      <aic>...
//				ontology    <aic>...
//				leader      <leader>...
//				certificate <attribute> <value>...
//				claim       <name> <value>...
//				dialect     <dialect>...
//				command     <command>...
//				method      <method>...
//				skill       <skill>...
//				mount       <path>...
//			}
//			decide <url> {
//				timeout        <duration>
//				allow_networks <cidr>...
//				ca             <file>...
//				client_cert    <cert> <key>
//			}
//			dry_run
//		}
//		quota <name> {
//			<condition> <value>...
//			of      leader|set|agent
//			calls   <n>/s|m|h [burst <n>]
//			starts  <n>/day
//			tasks   <n>
//			streams <n>
//			bytes   <size>/day
//			dry_run
//		}
//		timeouts {
//			response            <duration>
//			blocking            <duration>
//			awaiting_input      <duration>
//			awaiting_completion <duration>
//			max_awaiting        <duration>
//		}
//		limits {
//			body               <size>
//			depth              <n>
//			streams            <n>
//			streams_per_leader <n>
//			tasks_per_leader   <n>
//			memory             <size>
//			memory_per_leader  <size>
//		}
//		heartbeat  <duration>
//		write_timeout <duration>
//		completion auto|confirm
//		public_url <url>
//		card {
//			signatures         drop|keep|refuse
//			acs                01.00|02.01|02.02
//			version            <text>
//			organization       <name>
//			organization_url   <url>
//			department         <name>
//			country            <code>
//			license            <text>
//			ca_challenge_url   <url>
//			requested_validity <days>
//			registered         <file>
//		}
//		group {
//			allow_brokers   <pattern>...
//			allow_exchanges <leader> <exchange>...
//			tls {
//				ca          <file>...
//				client_cert <cert> <key>
//			}
//			token_key             <key>
//			exchange_wait         <duration>
//			max_groups            <n>
//			max_groups_per_leader <n>
//			prefetch              <n>
//		}
//	}
//
// A path matcher also says where the Partner is mounted.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	g := new(Gateway)
	return mounted(h, g, &g.BasePath)
}

// directive is a handler that a directive makes.
type directive interface {
	caddyhttp.MiddlewareHandler
	caddyfile.Unmarshaler
}

// handler reads a directive.
func handler[T any, H interface {
	*T
	directive
}](h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	m, d := H(new(T)), h.Dispenser
	d.Next()
	at := d.Token()
	d.Reset()
	err := m.UnmarshalCaddyfile(d)
	noteLine(m, at)
	return m, err
}

// mounted reads the directive of a handler for a Partner. A path in its matcher says where the Partner is mounted,
// unless the handler's options do.
func mounted(h httpcaddyfile.Helper, m directive, base *string) ([]httpcaddyfile.ConfigValue, error) {
	if h.Next(); h.NextArg() && strings.HasPrefix(h.Val(), "/") {
		*base = strings.TrimRight(h.Val(), "*/")
	}
	h.Reset()
	h.Next()
	at := h.Token()
	matcher, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	if err := m.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	noteLine(m, at)
	return h.NewRoute(matcher, m), nil
}

// UnmarshalCaddyfile sets up the handler from a Caddyfile, and checks what can be known without reading other files.
func (g *Gateway) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return readChecked(d, g, &Gateway{BasePath: g.BasePath}, func(p *parser, g *Gateway) { g.read(p) },
		(*Gateway).checkWritten)
}

// read reads the directive from its name on.
func (g *Gateway) read(p *parser) {
	p.of = g.subject
	if p.Next(); p.NextArg() {
		p.agentArgs(&g.Agent, p.Val())
	}
	t, l := &g.Timeouts, &g.Limits
	p.block("aip_gateway", options{
		"agent":         func() { p.agent(&g.Agent) },
		"name":          p.word(&g.Name),
		"aic":           p.word(&g.AIC),
		"aid":           p.word(&g.AID),
		"base_path":     p.word(&g.BasePath), // more explicit than the matcher
		"callers":       p.words(&g.Callers),
		"identity":      p.identity(&g.Identity),
		"allow":         p.words(&g.Allow),
		"aac":           p.aac(&g.AAC),
		"policy":        p.policy(&g.Policy),
		"quota":         p.quota(&g.Quotas),
		"heartbeat":     p.duration(&g.Heartbeat),
		"write_timeout": p.duration(&g.WriteTimeout),
		"completion":    p.word(&g.Completion),
		"public_url":    p.word(&g.PublicURL),
		"card":          p.card(&g.Card),
		"group":         p.group(&g.Group),
		"timeouts": p.section(options{
			"response":            p.duration(&t.Response),
			"blocking":            p.duration(&t.Blocking),
			"awaiting_input":      p.duration(&t.AwaitingInput),
			"awaiting_completion": p.duration(&t.AwaitingCompletion),
			"max_awaiting":        p.duration(&t.MaxAwaiting),
		}),
		"limits": p.section(options{
			"body":               size(p, &l.Body),
			"depth":              p.number(&l.Depth),
			"streams":            p.number(&l.Streams),
			"streams_per_leader": p.number(&l.StreamsPerLeader),
			"tasks_per_leader":   p.number(&l.TasksPerLeader),
			"memory":             size(p, &l.Memory),
			"memory_per_leader":  size(p, &l.MemoryPerLeader),
		}),
	})
	if g.Agent.Dialect == "" {
		p.fail("no agent is given; write aip_gateway <dialect> <url>, or agent <dialect> <url> in its block")
	}
}

func (p *parser) card(c *CardConfig) func() {
	return p.section(options{
		"signatures":         p.word(&c.Signatures),
		"acs":                p.word(&c.ACS),
		"version":            p.word(&c.Version),
		"requested_validity": p.number(&c.RequestedValidity),
		"registered":         p.word(&c.Registered),
		"organization":       p.word(&c.Organization),
		"organization_url":   p.word(&c.OrganizationURL),
		"department":         p.word(&c.Department),
		"country":            p.word(&c.Country),
		"license":            p.word(&c.License),
		"ca_challenge_url":   p.word(&c.CAChallengeURL),
	})
}

func (p *parser) agent(a *AgentConfig) {
	switch short, args := a.Dialect != "", p.NextArg(); { // short: it stands behind aip_gateway
	case short && args:
		p.fail("the agent is given twice; an aip_gateway fronts one. Behind aip_gateway or behind agent, write it once")
		return
	case args:
		p.agentArgs(a, p.Val())
	case !short:
		p.fail("agent needs a dialect and a URL: agent a2a/legacy http://127.0.0.1:9101")
		return
	}
	known := options{
		"header_up": p.pair("a name and a value", func(name, value string) {
			if a.HeaderUp == nil {
				a.HeaderUp = make(http.Header)
			}
			a.HeaderUp.Add(name, value)
		}),
		"card":                p.word(&a.Card),
		"caller":              p.section(a.Caller.options(p)),
		"timeout":             p.duration(&a.Timeout),
		"retry_for":           optional(p, &a.RetryFor, p.duration),
		"streams":             p.word(&a.Streams),
		"max_runs":            p.number(&a.MaxRuns),
		"max_runs_per_leader": p.number(&a.MaxRunsPerLeader),
		"check":               p.duration(&a.Check),
		"resend":              a.Resend.parse(p),
		"tls": p.section(a.TLS.options(p, options{
			"ca":          p.words(&a.TLS.CA),
			"client_cert": p.clientCert(&a.TLS.Cert, &a.TLS.Key, &a.TLS.Obtained),
			"server_name": p.word(&a.TLS.ServerName),
			"revocation":  p.flag(&a.TLS.Revocation),
		})),
	}
	for _, s := range a.own() {
		maps.Copy(known, s.options(p))
	}
	p.block("agent", known)
}

// agentArgs parses the arguments of an agent, of which the first is its dialect, or its URL if the dialect is a2a.
func (p *parser) agentArgs(a *AgentConfig, first string) {
	if strings.Contains(first, ":") || placeholder.MatchString(first) { // no dialect has that
		a.Dialect, a.URL = gateway.A2A, first
		if p.NextArg() {
			p.fail("agent takes a dialect and a URL, in this order, but " + strconv.Quote(p.Val()) + " follows the URL")
		}
		return
	}
	if a.Dialect = first; a.dialect().Transport == gateway.OverAUN {
		p.aunArgs(a)
		return
	}
	if !p.NextArg() {
		p.fail("agent " + first + " needs a URL, such as http://127.0.0.1:9101")
		return
	}
	if a.URL = p.Val(); a.dialect().Found() && !strings.ContainsAny(a.URL, ":/{") {
		a.URL, a.AIC = "", a.URL
	}
	if p.NextArg() {
		p.fail("agent takes a dialect and a URL, but there is also " + strconv.Quote(p.Val()))
	}
}

// Interface guards.
var (
	_ caddyfile.Unmarshaler = (*Gateway)(nil)
)
