// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/dustin/go-humanize"
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
//		store pebble [<dir>] {
//			sync       state|always|never
//			retention  <duration>
//			max_events <n>
//			max_bytes  <size>
//			max_size   <size>
//		}
//		store memory {
//			retention  <duration>
//			max_events <n>
//			max_bytes  <size>
//			max_size   <size>
//			capacity   <size>
//		}
//		notify {
//			attempts       <n>
//			timeout        <duration>
//			concurrency    <n>
//			allow_networks <cidr>...
//			signing_key    <key>
//			callback       <url>
//		}
//		drain <duration>
//	}
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("the aip option is given twice")
	}
	app := new(App)
	p := parser{Dispenser: d}
	d.Next()
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	p.block("aip", func(name string) bool {
		switch name {
		case "store":
			p.store(&app.Store)
		case "notify":
			p.notify(&app.Notify)
		case "drain":
			p.duration(&app.Drain)
		default:
			return false
		}
		return true
	})
	if p.err != nil {
		return nil, p.err
	}
	value, err := json.Marshal(app)
	if err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "aip", Value: value}, nil
}

func (p *parser) store(s *Store) {
	if !p.NextArg() {
		p.fail("store needs a driver: pebble or memory")
		return
	}
	s.Driver = p.Val()
	if s.Driver == driverPebble && p.NextArg() {
		s.Dir = p.Val()
	}
	if p.NextArg() {
		p.fail("store " + s.Driver + " takes no argument " + strconv.Quote(p.Val()))
		return
	}
	p.block("store", func(name string) bool {
		switch name {
		case "sync":
			p.word(&s.Sync)
		case "retention":
			p.duration(&s.Retention)
		case "max_events":
			p.number(&s.MaxEvents)
		case "max_bytes":
			p.size(&s.MaxBytes)
		case "max_size":
			p.size(&s.MaxSize)
		case "capacity":
			p.size(&s.Capacity)
		default:
			return false
		}
		return true
	})
}

func (p *parser) notify(n *Notify) {
	p.block("notify", func(name string) bool {
		switch name {
		case "attempts":
			p.number(&n.Attempts)
		case "timeout":
			p.duration(&n.Timeout)
		case "concurrency":
			p.number(&n.Concurrency)
		case "allow_networks":
			p.words(&n.AllowNetworks)
		case "signing_key":
			var key string
			p.word(&key)
			n.SigningKeys = append(n.SigningKeys, key)
		case "callback":
			p.word(&n.Callback)
		default:
			return false
		}
		return true
	})
}

// parseDirective parses the directive. Syntax:
//
//	aip_gateway [<matcher>] [<dialect> <url>] {
//		agent <dialect> <url> {
//			header_up <name> <value>
//			timeout   <duration>
//			retry_for <duration>
//			max_runs  <n>
//			tls {
//				ca          <file>...
//				client_cert <cert> <key>
//				server_name <name>
//			}
//		}
//		aic       <aic>
//		base_path <path>
//		callers   <dialect>...
//		identity  required|optional|off
//		allow     <aic>...
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
//			signatures       drop|keep|refuse
//			acs              01.00|02.01
//			organization     <name>
//			organization_url <url>
//			department       <name>
//			country          <code>
//			license          <text>
//			ca_challenge_url <url>
//		}
//	}
//
// A path matcher also says where the Partner is mounted.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	g := new(Gateway)
	if h.Next(); h.NextArg() && strings.HasPrefix(h.Val(), "/") {
		g.BasePath = strings.TrimRight(h.Val(), "*/")
	}
	h.Reset()
	h.Next()
	matcher, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	if err := g.UnmarshalCaddyfile(h.Dispenser); err != nil {
		return nil, err
	}
	return h.NewRoute(matcher, g), nil
}

// UnmarshalCaddyfile sets up the handler from a Caddyfile. It judges no values: Provision does.
func (g *Gateway) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	p := parser{Dispenser: d}
	d.Next()
	if d.NextArg() {
		p.agentArgs(&g.Agent, d.Val())
	}
	p.block("aip_gateway", func(name string) bool {
		switch name {
		case "agent":
			if g.Agent.Dialect != "" {
				p.fail("the agent is given twice; an aip_gateway fronts one")
				return true
			}
			p.agent(&g.Agent)
		case "aic":
			p.word(&g.AIC)
		case "base_path":
			g.BasePath = "" // the block is more explicit than the matcher
			p.word(&g.BasePath)
		case "callers":
			p.words(&g.Callers)
		case "identity":
			p.word(&g.Identity)
		case "allow":
			p.words(&g.Allow)
		case "heartbeat":
			p.duration(&g.Heartbeat)
		case "write_timeout":
			p.duration(&g.WriteTimeout)
		case "completion":
			p.word(&g.Completion)
		case "public_url":
			p.word(&g.PublicURL)
		case "card":
			p.card(&g.Card)
		case "timeouts":
			p.block("timeouts", func(name string) bool {
				switch name {
				case "response":
					p.duration(&g.Timeouts.Response)
				case "blocking":
					p.duration(&g.Timeouts.Blocking)
				case "awaiting_input":
					p.duration(&g.Timeouts.AwaitingInput)
				case "awaiting_completion":
					p.duration(&g.Timeouts.AwaitingCompletion)
				case "max_awaiting":
					p.duration(&g.Timeouts.MaxAwaiting)
				default:
					return false
				}
				return true
			})
		case "limits":
			p.block("limits", func(name string) bool {
				switch name {
				case "body":
					var n int64
					p.size(&n)
					g.Limits.Body = int(n)
				case "depth":
					p.number(&g.Limits.Depth)
				case "streams":
					p.number(&g.Limits.Streams)
				case "streams_per_leader":
					p.number(&g.Limits.StreamsPerLeader)
				case "tasks_per_leader":
					p.number(&g.Limits.TasksPerLeader)
				case "memory":
					p.size(&g.Limits.Memory)
				case "memory_per_leader":
					p.size(&g.Limits.MemoryPerLeader)
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
	if p.err == nil && g.Agent.Dialect == "" {
		p.fail("no agent is given; write aip_gateway <dialect> <url>, or agent <dialect> <url> in its block")
	}
	return p.err
}

func (p *parser) card(c *CardConfig) {
	p.block("card", func(name string) bool {
		into, ok := map[string]*string{
			"signatures": &c.Signatures, "acs": &c.ACS, "organization": &c.Organization, "organization_url": &c.OrganizationURL,
			"department": &c.Department, "country": &c.Country, "license": &c.License, "ca_challenge_url": &c.CAChallengeURL,
		}[name]
		if ok {
			p.word(into)
		}
		return ok
	})
}

func (p *parser) agent(a *AgentConfig) {
	if !p.NextArg() {
		p.fail("agent needs a dialect and a URL: agent a2a/legacy http://127.0.0.1:9101")
		return
	}
	p.agentArgs(a, p.Val())
	p.block("agent", func(name string) bool {
		switch name {
		case "header_up":
			args := p.RemainingArgs()
			if len(args) != 2 {
				p.fail("header_up needs a name and a value")
				return true
			}
			if a.HeaderUp == nil {
				a.HeaderUp = make(http.Header)
			}
			a.HeaderUp.Add(args[0], args[1])
		case "timeout":
			p.duration(&a.Timeout)
		case "retry_for":
			a.RetryFor = new(caddy.Duration)
			p.duration(a.RetryFor)
		case "max_runs":
			p.number(&a.MaxRuns)
		case "tls":
			p.agentTLS(&a.TLS)
		default:
			return false
		}
		return true
	})
}

func (p *parser) agentTLS(t *AgentTLS) {
	p.block("tls", func(name string) bool {
		switch name {
		case "ca":
			p.words(&t.CA)
		case "client_cert":
			args := p.RemainingArgs()
			if len(args) != 2 {
				p.fail("client_cert needs a certificate and a key, both PEM files")
				return true
			}
			t.Cert, t.Key = args[0], args[1]
		case "server_name":
			p.word(&t.ServerName)
		default:
			return false
		}
		return true
	})
}

func (p *parser) agentArgs(a *AgentConfig, dialect string) {
	a.Dialect = dialect
	if !p.NextArg() {
		p.fail("agent " + dialect + " needs a URL, such as http://127.0.0.1:9101")
		return
	}
	a.URL = p.Val()
	if p.NextArg() {
		p.fail("agent takes a dialect and a URL, but there is also " + strconv.Quote(p.Val()))
	}
}

// parser reads values and remembers the first mistake, so that the grammar above reads like the grammar.
type parser struct {
	*caddyfile.Dispenser
	err error
}

func (p *parser) fail(why string) {
	if p.err == nil {
		p.err = p.Err(why)
	}
}

// repeatable are the names that may stand in a block more than once.
var repeatable = []string{"header_up", "allow", "allow_networks", "signing_key"}

// block reads a block, if there is one, each name in it at most once but for those that add to a list. known
// reports false for a name that it does not have.
func (p *parser) block(what string, known func(name string) bool) {
	seen := make(map[string]bool)
	for nesting := p.Nesting(); p.err == nil && p.NextBlock(nesting); {
		name := p.Val()
		if seen[name] && !slices.Contains(repeatable, name) {
			p.fail(name + " is given twice in " + what)
			return
		}
		seen[name] = true
		if !known(name) {
			p.fail("there is no " + strconv.Quote(name) + " in " + what)
		}
	}
}

// word reads the only argument.
func (p *parser) word(into *string) {
	name := p.Val()
	args := p.RemainingArgs()
	if len(args) != 1 {
		p.fail(name + " needs exactly one value")
		return
	}
	*into = args[0]
}

func (p *parser) words(into *[]string) {
	name := p.Val()
	args := p.RemainingArgs()
	if len(args) == 0 {
		p.fail(name + " needs at least one value")
	}
	*into = append(*into, args...)
}

func (p *parser) duration(into *caddy.Duration) {
	d := time.Duration(*into)
	value(p, &d, "a duration, such as 30s or 24h", caddy.ParseDuration)
	*into = caddy.Duration(d)
}

func (p *parser) number(into *int) { value(p, into, "a whole number", strconv.Atoi) }

func (p *parser) size(into *int64) {
	value(p, into, "a size, such as 64MiB", func(s string) (int64, error) {
		n, err := humanize.ParseBytes(s)
		if n > 1<<50 {
			err = strconv.ErrRange
		}
		return int64(n), err
	})
}

// value reads the only argument as something that must be what must says.
func value[T any](p *parser, into *T, must string, parse func(string) (T, error)) {
	name, s := p.Val(), ""
	if p.word(&s); s == "" {
		return
	}
	v, err := parse(s)
	if err != nil {
		p.fail(name + " is " + strconv.Quote(s) + ", but must be " + must)
		return
	}
	*into = v
}

// Interface guards.
var (
	_ caddyfile.Unmarshaler = (*Gateway)(nil)
)
