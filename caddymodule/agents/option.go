// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/shown"
)

// Read reads the option. Syntax:
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
func Read(p *conf.Parser, a *Config) {
	switch short, args := a.Dialect != "", p.NextArg(); { // short: it stands behind aip_gateway
	case short && args:
		p.Fail("the agent is given twice; an aip_gateway fronts one. Behind aip_gateway or behind agent, write it once")
		return
	case args:
		ReadArgs(p, a, p.Val())
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
		"tls": p.Section(a.TLS.Options(p, conf.Options{
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

// ReadArgs parses the arguments of an agent, of which the first is its dialect, or its URL if the dialect is a2a.
func ReadArgs(p *conf.Parser, a *Config, first string) {
	if strings.Contains(first, ":") || len(shown.Placeholders(first)) > 0 { // no dialect has that
		a.Dialect, a.URL = gateway.A2A, first
		if p.NextArg() {
			p.Fail("agent takes a dialect and a URL, in this order, but " + strconv.Quote(p.Val()) + " follows the URL")
		}
		return
	}
	if a.Dialect = first; a.Speaks().Transport == gateway.OverAUN {
		readAUNArgs(p, a)
		return
	}
	if !p.NextArg() {
		p.Fail("agent " + first + " needs a URL, such as http://127.0.0.1:9101")
		return
	}
	if a.URL = p.Val(); a.Speaks().Found() && !strings.ContainsAny(a.URL, ":/{") {
		a.URL, a.AIC = "", a.URL
	}
	if p.NextArg() {
		p.Fail("agent takes a dialect and a URL, but there is also " + strconv.Quote(p.Val()))
	}
}
