// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// handlersOf returns the handlers of a route: those that are provisioned, or else as they stand in the configuration.
func handlersOf(r *caddyhttp.Route) []caddyhttp.MiddlewareHandler {
	if len(r.HandlersRaw) == 0 {
		return r.Handlers
	}
	var all []caddyhttp.MiddlewareHandler
	for _, text := range r.HandlersRaw {
		var name string
		var settings map[string]json.RawMessage
		if json.Unmarshal(text, &settings) != nil || json.Unmarshal(settings["handler"], &name) != nil {
			continue // Caddy refuses it
		}
		delete(settings, "handler")
		text, _ = json.Marshal(settings) // of texts
		if h, ok := moduleIn("http.handlers."+name, text).(caddyhttp.MiddlewareHandler); ok {
			all = append(all, h)
		}
	}
	return all
}

// matchersOf returns the matchers of a route, likewise.
func matchersOf(r *caddyhttp.Route) caddyhttp.MatcherSets {
	if len(r.MatcherSetsRaw) == 0 {
		return r.MatcherSets
	}
	var sets caddyhttp.MatcherSets
	for _, written := range r.MatcherSetsRaw {
		var set caddyhttp.MatcherSet
		for name, text := range written {
			set = append(set, moduleIn("http.matchers."+name, text))
		}
		sets = append(sets, set)
	}
	return sets
}

// moduleIn returns a module as it stands in a configuration; nil for one that Caddy refuses.
func moduleIn(id string, text json.RawMessage) any {
	info, err := caddy.GetModule(id)
	if err != nil {
		return nil
	}
	m := info.New()
	if json.Unmarshal(text, m) != nil {
		return nil
	}
	return m
}
