// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/aip-gateway/aip-gateway/caddymodule/acps"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/cards"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/caddymodule/proof"
	"github.com/aip-gateway/aip-gateway/caddymodule/rules"
	"github.com/aip-gateway/aip-gateway/caddymodule/webhooks"
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
		"discovery":  acps.DiscoveryOption(p, &a.Discovery),
		"find":       acps.FindOption(p, &a.Find),
		"registry":   acps.RegistryOption(p, &a.Registry),

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
func notifyOption(p *conf.Parser, n *webhooks.Config) func() {
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
		agents.ReadArgs(p, &g.Agent, p.Val())
	}
	t, l := &g.Timeouts, &g.Limits
	p.Block("aip_gateway", conf.Options{
		"agent":         func() { agents.Read(p, &g.Agent) },
		"name":          p.Word(&g.Name),
		"aic":           p.Word(&g.AIC),
		"aid":           p.Word(&g.AID),
		"base_path":     p.Word(&g.BasePath), // more explicit than the matcher
		"callers":       p.Words(&g.Callers),
		"identity":      proof.Option(p, &g.Identity),
		"allow":         p.Words(&g.Allow),
		"aac":           aacOption(p, &g.AAC),
		"policy":        rules.PolicyOption(p, &g.Policy),
		"quota":         rules.QuotaOption(p, &g.Quotas),
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
func cardOption(p *conf.Parser, c *cards.Config) func() {
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

// checkWritten checks what stands in a Caddyfile, and changes nothing.
func (a *App) checkWritten() error {
	c := App{Drain: a.Drain, Notify: a.Notify, Traces: a.Traces}
	c.Notify.FillDefaults()
	_, err := readIdentities(a.Identities)
	if err == nil && a.written != nil {
		err = a.written.CheckWritten()
	}
	return cmp.Or(err, c.Validate(), a.AMP.checkWritten())
}

// Interface guards.
var (
	_ caddyfile.Unmarshaler = (*Gateway)(nil)
)
