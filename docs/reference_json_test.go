// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// The reference does not say which member of the JSON an option sets: it writes the option in a Caddyfile, and looks.

// samples are values for the names in angle brackets, by the path of the option and the name, or by the name alone.
var samples = map[string]string{
	"n": "17", "duration": "31s", "size": "70MiB", "days": "90", "url": "https://example.com/x",
	"file": "/tmp/x.pem", "cidr": "10.20.0.0/16", "aic": "10001000011K94ZH3VDXLP4S5EB63614",
	"AIC": "10001000011K94ZH3VDXLP4S5EB63614", "aid": "bob.aid.pub", "dialect": "a2a/1.0",
	"key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "algorithm": "ES256", "path": "/path", "address": "10.0.0.1",
	"proof": "mtls", "driver": "memory", "matcher": "/path*",
	"directory": "https://ca.example/acps-atr-v2/acme/directory", "host": "a.example",
	"pattern": "amqps://mq.example.com", "receiver": "hooks.example.com", "condition": "aic", "type": "metrics",
	"rate": "5/s", "permission": "cancel", "value": "10001000011K94ZH3VDXLP4S5EB63614",
	"attribute": "organization", "command": "start", "user": "caddy",
	"leader": "10001000011K94ZH3VDXLP4S5EB63614", "exchange": "x", "credential": "x", "skill": "x",
	"method": "message/send", "registrar": "10001", "aip_gateway policy allow|deny registrar aic": "10001",
	"aip_gateway policy allow|deny vendor aic":   "1000100001",
	"aip_gateway policy allow|deny ontology aic": "10001000011K94ZH3VDXLP",
	"aip_gateway policy allow|deny value":        "10001000011K94ZH3VDXLP4S5EB63614",
	"aip registry url":                           "https://registry.example",
	"aip find registry url":                      "https://registry.example",
	"aip find agent dialect":                     "aip/2", "aip traces link url": "https://example.com/{trace_id}",
	"aip registry ontology url": "https://o.example", "aip amp directory": "/tmp", "aip revocation n": "9",
	"aip_gateway group inbox url": "amqps://mq.example.com/acps", "store jetstream url": "nats://a",
	"aip_gateway identity accept dialect": "a2a", "aip_gateway agent dialect": "a2a/1.0",
	"aip_gateway dialect": "a2a/1.0", "aip_gateway base_path path": "/x",
	"aip_gateway group token_key key": strings.Repeat("0b", 32), "aip_gateway group max_groups n": "900",
	"aip_gateway quota starts n": "5", "store dir": "/tmp/store", "wss-url": "wss://a.example/aun",
	"aip_identify limits body size": "5MiB", "aip identities name": "carol.aid.pub",
	"store jetstream replicas n": "5", "aip_gateway agent card url": "https://example.com/card.json",
	"aip_gateway timeouts max_awaiting duration": "40d", "aip_gateway limits body size": "5MiB",
	"aip_gateway limits memory size": "200MiB", "aip_gateway limits memory_per_leader size": "50MiB",
	"aip amp interval duration": "31s", "aip revocation max_age duration": "31m",
}

// beside are options that another one needs in its block, by the path of the block.
var beside = map[string][]string{
	"aip aun":        {"cert /tmp/a.pem", "roots /tmp/r.pem"},
	"aip issuer":     {"keys /tmp/k.pem"},
	"aip find":       {"agent 10001000011K912345E789ABCDEF2353 https://a.example/rpc"},
	"aip revocation": {"crl /tmp/a.crl"},
	"aip registry":   {"user a b"},
	"aip_gateway": {"agent a2a https://127.0.0.1:9102", "aic 10001000011K912345E789ABCDEF2353", "aid alice.aid.pub",
		"public_url https://agent.example.com"},

	"aip_gateway aac":    {"issuer https://a.example"},
	"aip_gateway quota":  {"calls 7/s"},
	"aip_gateway policy": {"allow"},
	"aip_gateway group":  {"allow_brokers amqps://b.example", "tls {\nclient_cert /tmp/a.pem /tmp/b.pem\n}"},

	"aip_gateway identity":                               {"mtls"},
	"aip_gateway identity jwt":                           {"issuer https://a.example", "audience b"},
	"aip_gateway identity oidc":                          {"audience b"},
	"aip_gateway identity client_cert_header":            {"trust_pool /tmp/r.pem"},
	"aip_gateway identity client_cert_header revocation": {"crl /tmp/a.crl"},
}

// openers are how blocks begin where their shortest form does not do, by the path of the block.
var openers = map[string]string{
	"store": "store pebble", "aip_gateway agent": "agent a2a https://127.0.0.1:9102",
}

// openersFor are how the block around an option begins, by the path of the option.
var openersFor = map[string]string{
	"aip_gateway agent expose": "agent agentapi http://127.0.0.1:9102", "aip_gateway agent roots": "agent aun b.aid.pub",
	"aip_gateway agent cancel_path": "agent agentapi http://127.0.0.1:9102",
	"aip_gateway agent identity":    "agent aun b.aid.pub", "aip_gateway agent idle_window": "agent aun b.aid.pub",
}

// setBy returns the members of the JSON that the ways to write an option set.
func setBy(t *testing.T, o *option, module string, settings []setting) (paths []string) {
	t.Helper()
	before, err := members(caddyfileOf(o, "", o.first()), module, settings)
	if err != nil && o.parent != nil { // it is required
		if before, err = members(caddyfileOf(o, "", ""), module, settings); err != nil {
			t.Errorf("%s: %v\n%s", o.path(), err, caddyfileOf(o, "", ""))
		}
	}
	found := make(map[string]bool)
	for _, way := range o.written(o.sample) {
		input := caddyfileOf(o, way, o.first())
		after, err := members(input, module, settings)
		if err != nil && o.opens { // perhaps it needs something in its block
			with := way + " {\n" + strings.Join(o.needs(), "\n") + "\n}"
			after, err = members(caddyfileOf(o, with, o.first()), module, settings)
			for _, inner := range o.options()[1:] {
				for _, path := range setBy(t, inner, module, settings) {
					delete(after, path)
				}
			}
		}
		if err != nil {
			t.Errorf("the comment says that this can be written, but: %v\n%s", err, input)
		}
		for path, v := range after {
			if before[path] != v {
				found[path] = true
			}
		}
	}
	for _, s := range settings { // in the order of the source
		if found[s.path] {
			paths = append(paths, s.path)
		}
	}
	return paths
}

// first returns the first word of an option.
func (o *option) first() string {
	first, _, _ := strings.Cut(o.form, " ")
	return first
}

// needs returns the options that another one needs in a block.
func (o *option) needs() []string {
	if lines, ok := beside[o.path()]; ok {
		return lines
	}
	return beside[strings.Replace(o.path(), "aip_identify ", "aip_gateway ", 1)]
}

// sample returns a value for a name in angle brackets of an option.
func (o *option) sample(name string) string {
	for _, key := range []string{o.path() + " " + name, name} {
		if v, ok := samples[key]; ok {
			return v
		}
	}
	return "word"
}

// caddyfileOf returns a Caddyfile with an option, written in one way; "" leaves it out. What stands beside it in its
// block does not have those that begin with a word.
func caddyfileOf(o *option, way, without string) string {
	text := way
	for at := o; at.parent != nil; at = at.parent {
		block := at.parent
		lines := []string{text}
		for _, line := range block.needs() {
			if first, _, _ := strings.Cut(line, " "); first != without {
				lines = append(lines, line)
			}
		}
		open, ok := openersFor[o.path()]
		if !ok || block != o.parent {
			open, ok = openers[block.path()]
		}
		if !ok {
			open = block.written(block.sample)[0]
		}
		text = open + " {\n" + strings.Join(lines, "\n") + "\n}"
		without = block.first()
	}
	for o.parent != nil {
		o = o.parent
	}
	return rooted(o, text)
}

// rooted returns a Caddyfile with what has a syntax of its own.
func rooted(o *option, text string) string {
	switch root := o.path(); {
	case root == "aip":
		return "{\n" + text + "\n}\n:8443 {\n}\n"
	case strings.HasPrefix(root, "store"):
		return "{\naip {\n" + text + "\n}\n}\n:8443 {\n}\n"
	case strings.HasPrefix(root, "trust_pool"), strings.HasPrefix(root, "verifier"):
		return ":8443 {\ntls internal {\nclient_auth {\n" + text + "\n}\n}\n}\n"
	case strings.HasPrefix(root, "get_certificate"):
		return "localhost {\ntls {\n" + text + "\n}\n}\n"
	case root == "aip_method":
		return ":8443 {\n@m " + text + "\nabort @m\n}\n"
	}
	return ":8443 {\n" + text + "\n}\n"
}

// members returns the members of a module's JSON by their paths.
func members(input, module string, settings []setting) (map[string]string, error) {
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").
		Adapt(caddyfile.Format([]byte(input)), map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return nil, err
	}
	var config any
	if err := json.Unmarshal(adapted, &config); err != nil {
		return nil, err
	}
	inner := make(map[string]bool)
	for _, s := range settings {
		inner[s.path] = s.inner
	}
	found := make(map[string]string)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if list, ok := v.([]any); ok && inner[path] {
			for _, e := range list {
				walk(path, e)
			}
			return
		}
		if object, ok := v.(map[string]any); ok && (path == "" || inner[path]) {
			for _, name := range slices.Sorted(maps.Keys(object)) {
				walk(strings.TrimPrefix(path+"."+name, "."), object[name])
			}
			return
		}
		if _, ok := v.(string); ok && inner[path] { // the mode alone
			path += ".mode"
		}
		if v != nil && v != "" {
			found[path] += fmt.Sprint(v) + "\n"
		}
	}
	walk("", moduleIn(config, module))
	return found, nil
}

// moduleIn returns the JSON of a module in a configuration.
func moduleIn(config any, id string) any {
	if id == "aip" || strings.HasPrefix(id, "aip.") {
		apps, _ := config.(map[string]any)["apps"].(map[string]any)
		app, _ := apps["aip"].(map[string]any)
		if id == "aip" {
			return app
		}
		return app["store"]
	}
	kind, name := id[:strings.LastIndex(id, ".")], id[strings.LastIndex(id, ".")+1:]
	key := map[string]string{"http.handlers": "handler", "tls.ca_pool.source": "provider",
		"tls.get_certificate": "via"}[kind]
	switch v := config.(type) {
	case map[string]any:
		if v[key] == name {
			return v
		}
		for _, e := range v {
			if m := moduleIn(e, id); m != nil {
				return m
			}
		}
	case []any:
		for _, e := range v {
			if m := moduleIn(e, id); m != nil {
				return m
			}
		}
	}
	return nil
}
