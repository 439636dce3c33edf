// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// server is what is read of a server of a configuration.
type server struct {
	Listen      []string                    `json:"listen"`
	Policies    caddytls.ConnectionPolicies `json:"tls_connection_policies"`
	StrictHost  *bool                       `json:"strict_sni_host"`
	Logs        *accessLogs                 `json:"logs"`
	WriteWithin caddy.Duration              `json:"write_timeout"`
	Routes      []route                     `json:"routes"`
	NamedRoutes map[string]route            `json:"named_routes"`
}

// accessLogs is what is read of the access logs of a server.
type accessLogs struct {
	Credentials bool `json:"should_log_credentials"`
}

// route is what is read of a route.
type route struct {
	Match  []matcherSet      `json:"match"`
	Handle []json.RawMessage `json:"handle"`
}

// matcherSet is matchers, by their names, all of which a request must match.
type matcherSet map[string]json.RawMessage

// list returns what a matcher that is a list has; none without such a matcher.
func (m matcherSet) list(name string) (all []string) {
	_ = json.Unmarshal(m[name], &all) // Caddy refuses what is none
	return all
}

// mounted is a Partner of a configuration, with how requests get to it.
type mounted struct {
	Partner

	settings partnerSettings
	limits   []pathLimit   // of the routes that it is in, the outermost first
	stripped string        // the prefix of the path that routes remove
	invoked  bool          // it is in a named route, whose callers are not known
	hosts    []string      // the names of its site; none for any
	within   time.Duration // in which Caddy lets an answer be written; 0 for no bound
	strict   bool          // Caddy compares the host of a request with the name of the server that its connection names
}

// partnerSettings is what is read of a handler aip_gateway.
type partnerSettings struct {
	Name     string   `json:"name"`
	AIC      string   `json:"aic"`
	BasePath string   `json:"base_path"`
	Public   string   `json:"public_url"`
	Callers  []string `json:"callers"`
	Agent    struct {
		URL string    `json:"url"`
		AIC string    `json:"aic"`
		AID string    `json:"aid"`
		TLS keyedPair `json:"tls"`

		Identity string   `json:"identity"` // of an agent of AUN, as are Roots
		Roots    []string `json:"roots"`
	} `json:"agent"`
	Group struct {
		TLS keyedPair `json:"tls"`
	} `json:"group"`
}

// keyedPair names the files of a certificate and its key, and of the roots that the other side's is checked against.
type keyedPair struct {
	CA   []string `json:"ca"`
	Cert string   `json:"cert"`
	Key  string   `json:"key"`
}

// name returns what identifies the Partner for an operator.
func (s *partnerSettings) name() string {
	return cmp.Or(s.Name, s.AIC, s.Agent.URL, s.Agent.AIC, s.Agent.AID, "aip_gateway")
}

// pathLimit is the patterns of a route, one of which the path of a request must match.
type pathLimit struct {
	patterns []string
	stripped string // the prefix of the path that was removed before
}

// partners returns the Partners of a configuration, by the names of their servers.
func (c *configuration) partners() (found []mounted) {
	var served []string
	for _, s := range c.Apps.HTTP.Servers {
		served = append(served, s.Listen...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Apps.HTTP.Servers)) {
		s := c.Apps.HTTP.Servers[name]
		at := mounted{Partner: Partner{Policies: s.Policies, Served: served, LogsAccess: s.Logs != nil,
			LogsCredentials: s.Logs != nil && s.Logs.Credentials}, strict: s.StrictHost == nil || *s.StrictHost,
			within: time.Duration(s.WriteWithin)}
		found = append(found, partnersIn(s.Routes, at)...)
		at.invoked = true
		for _, name := range slices.Sorted(maps.Keys(s.NamedRoutes)) {
			found = append(found, partnersIn([]route{s.NamedRoutes[name]}, at)...)
		}
	}
	return found
}

// partnersIn returns the Partners in routes, to which requests get as at says.
func partnersIn(routes []route, at mounted) (found []mounted) {
	for _, r := range routes {
		here := at
		var patterns []string
		limited := len(r.Match) > 0
		for _, set := range r.Match {
			paths := set.list("path")
			limited = limited && len(paths) > 0
			patterns = append(patterns, paths...)
			here.hosts = append(slices.Clip(here.hosts), set.list("host")...)
		}
		if limited {
			here.limits = append(slices.Clip(here.limits), pathLimit{patterns, here.stripped})
		}
		for _, raw := range r.Handle {
			var h struct {
				Handler string  `json:"handler"`
				Strip   string  `json:"strip_path_prefix"`
				Routes  []route `json:"routes"`
			}
			if json.Unmarshal(raw, &h) != nil {
				continue // Caddy refuses it
			}
			switch h.Handler {
			case "rewrite":
				here.stripped += strings.TrimSuffix(h.Strip, "/")
			case "subroute":
				found = append(found, partnersIn(h.Routes, here)...)
			case "aip_gateway":
				p := here
				p.Handler = raw
				_ = json.Unmarshal(raw, &p.settings) // Examine reports what is wrong with it
				found = append(found, p)
			}
		}
		if len(r.Match) == 0 {
			at.stripped = here.stripped // the routes that follow get the request, too
		}
	}
	return found
}

// examineBasePath says whether the routes let requests through to the paths that the Partner serves.
func (p *mounted) examineBasePath() []Finding {
	base := strings.TrimSuffix(p.settings.BasePath, "/")
	f := Finding{CheckBasePath, Broken, p.settings.name(), ""}
	if p.invoked {
		return nil
	}
	for _, l := range p.limits {
		removed := strings.TrimPrefix(p.stripped, l.stripped) // behind the matcher
		if slices.ContainsFunc(l.patterns, func(pattern string) bool { return p.passes(pattern, removed+base) }) {
			continue
		}
		f.Text = fmt.Sprintf("no call reaches the Partner, because its base_path is %q and its route takes only %s; ",
			base, strings.Join(l.patterns, " "))
		mount := strings.TrimSuffix(strings.TrimSuffix(l.patterns[0], "*"), "/")
		if rest, ok := strings.CutPrefix(mount, removed); ok && rest != base && !strings.Contains(rest, "*") {
			f.Text += fmt.Sprintf("set base_path to %q", rest)
		} else {
			f.Text += "correct base_path or the matcher"
		}
		return []Finding{f}
	}
	if base != "" && base == p.stripped {
		f.Status = Warning
		f.Text = fmt.Sprintf("handle_path removes %s from the path, so that the Partner is at %s%s; remove base_path, "+
			"or use handle", base, base, base)
		return []Finding{f}
	}
	return nil
}

// examineTimeouts says whether Caddy ends streams, and answers that wait for the agent.
func (p *mounted) examineTimeouts() []Finding {
	if p.within <= 0 {
		return nil
	}
	return []Finding{{CheckTimeouts, Warning, p.settings.name(), fmt.Sprintf("Caddy cuts each stream of the site after "+
		"%s, and each answer that takes longer; remove write from the timeouts of servers: write_timeout of aip_gateway "+
		"bounds each write", p.within)}}
}

// passes reports whether a pattern lets through requests to a Partner at a path. It is true where that is not certain.
func (p *mounted) passes(pattern, at string) bool {
	pattern, at = strings.ToLower(pattern), strings.ToLower(at)
	prefix, open := strings.CutSuffix(pattern, "*")
	if strings.ContainsAny(prefix, "*{%") {
		return true
	}
	for _, path := range []string{at, at + "/", at + "/rpc", at + "/stream"} {
		if path == pattern || open && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	// Callers of other dialects than AIP have paths of their own below the mount point.
	others := slices.ContainsFunc(p.settings.Callers, func(c string) bool { return c != "aip" && c != "aip/2" })
	return others && strings.HasPrefix(prefix, at+"/")
}
