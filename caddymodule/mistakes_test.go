// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// TestMistakes holds what is said about each mistake in a Caddyfile: where it is, which agent's it is, and which value
// or option is wrong.
func TestMistakes(t *testing.T) {
	app := func(options string) string { return "{\naip {\n" + options + "\n}\n}\n:8443 {\n}\n" }
	gateway := func(options string) string {
		return ":8443 {\naip_gateway /travel* a2a/0.3 http://127.0.0.1:9101 {\n" + options + "\n}\n}\n"
	}
	for _, tt := range []struct{ file, want string }{
		// Values.
		{gateway("aic my-agent"),
			`'aip_gateway': travel: aic: "my-agent": the AIC has 8 characters, neither the 32 of an AIC of ` +
				`v01.00 nor the dots of a later one; make one with: caddy aip aic make, at Caddyfile:3`},
		{gateway("identity required {\njwt {\nissuer https://a.example\naudience a\nleeway -1s\n}\n}"),
			`'aip_gateway': travel: identity: jwt: leeway is -1s, but must not be negative, at Caddyfile:4`},
		{gateway("aic 10001000011K912345E789ABCDEF2353\naac {\nissuer https://a.example\nleeway -1s\n}"),
			`'aip_gateway': travel: aac: leeway is -1s, but must not be negative, at Caddyfile:6`},
		{gateway("heartbeat 1ms"),
			`'aip_gateway': travel: heartbeat: 1ms is too short; use a second or more, at Caddyfile:3`},
		{gateway("heartbeat soon"),
			`'aip_gateway': travel: heartbeat is "soon", but must be a duration, such as 30s or 24h, at ` +
				`Caddyfile:3`},
		{gateway("write_timeout 5ms"),
			`'aip_gateway': travel: write_timeout: 5ms is too short; use a second or more, at Caddyfile:3`},
		{gateway("completion maybe"),
			`'aip_gateway': travel: completion: it is "maybe", but must be auto or confirm, at Caddyfile:3`},
		{gateway("callers a2a\ncallers b2a"),
			`'aip_gateway': travel: callers is given twice in aip_gateway, at Caddyfile:4`},
		{gateway("allow 10001000011K912345E789ABCDEF2353\nallow me"),
			`'aip_gateway': travel: allow: "me": the AIC has 2 characters, neither the 32 of an AIC of v01.00 ` +
				`nor the dots of a later one, at Caddyfile:4`},
		{gateway("agent {\ncard ftp://agent.example/card\n}"),
			`'aip_gateway': travel: agent: card: write an http or https URL without a user, or the name of a file, at ` +
				`Caddyfile:4`},
		{gateway("public_url travel.example.com"),
			`'aip_gateway': travel: public_url: "travel.example.com" is no http or https URL, at Caddyfile:3`},
		{gateway("base_path travel"),
			`'aip_gateway': travel: base_path: "travel" does not begin with a slash, at Caddyfile:3`},
		{gateway("name two words"),
			`'aip_gateway': travel: name needs exactly one value, at Caddyfile:3`},
		{gateway("name \"two words\""),
			`'aip_gateway': two words: name: "two words" must be at most 64 letters, digits, dots, dashes and ` +
				`underscores, and begin with a letter or a digit, at Caddyfile:3`},
		{gateway("aid nobody"),
			`'aip_gateway': travel: aid: "nobody" is not an AID: it must have the form name.issuer, as in ` +
				`alice.aid.pub, at Caddyfile:3`},
		{gateway("identity maybe"),
			`'aip_gateway': travel: identity: the identity mode is "maybe", and must be required, optional or ` +
				`off, at Caddyfile:3`},
		{gateway("callers aip a2a\nidentity {\nmtls\naccept a2b mtls\n}"),
			`'aip_gateway': travel: identity: accept: there is no dialect "a2b", at Caddyfile:6`},
		{gateway("callers aip a2a\nidentity {\nmtls\naccept a2a keys\n}"),
			`'aip_gateway': travel: identity: no caller of a2a/0.3 could prove who it is: that dialect accepts keys; ` +
				`configure one of them, or say what else it accepts, such as accept a2a/0.3 keys, at Caddyfile:6`},
		{gateway("agent {\nmax_runs 1\n}"),
			`'aip_gateway': travel: agent: max_runs is 1, but must be at least 2, at Caddyfile:4`},
		{gateway("agent {\nstreams never\n}"),
			`'aip_gateway': travel: agent: streams is "never", but must be auto, on or off, at Caddyfile:4`},
		{gateway("agent {\ntimeout 1m\nretry_for -1s\n}"),
			`'aip_gateway': travel: agent: retry_for is -1s, but must not be negative; 0 means no retry, at ` +
				`Caddyfile:5`},
		{gateway("agent {\ncheck 5ms\n}"),
			`'aip_gateway': travel: agent: check is 5ms, but must be at least 1s, at Caddyfile:4`},
		{gateway("agent {\nexpose all\n}"),
			`'aip_gateway': travel: agent: expose and cancel_path are for an agent of agentapi, not of a2a/0.3, ` +
				`at Caddyfile:4`},
		{gateway("timeouts {\nresponse 20s\nawaiting_input -1h\n}"),
			`'aip_gateway': travel: timeouts: awaiting_input is -1h0m0s, but must not be negative, at Caddyfile:5`},
		{gateway("limits {\nbody 4MiB\nmemory 1MiB\n}"),
			`'aip_gateway': travel: limits: memory is 1048576 bytes, but must be at least 16777220, four times the ` +
				`size of body, at Caddyfile:5`},
		{gateway("card {\nsignatures no\n}"),
			`'aip_gateway': travel: card: signatures is "no", but must be drop, keep or refuse, at Caddyfile:4`},
		{gateway("aic 10001000011K912345E789ABCDEF2353\ngroup {\nallow_brokers mq.example.com\nmax_groups 500000\n}"),
			`'aip_gateway': travel: group: max_groups is 500000, but must be 1 to 100000, at Caddyfile:6`},
		{gateway("policy {\nallow ours command beginn\n}"),
			`'aip_gateway': travel: policy: rule ours: command: there is no command "beginn", but get, start, ` +
				`continue, cancel, complete, re-stream, set-webhook, get-webhooks, delete-webhooks, list, ` +
				`extended-card, join-group, at Caddyfile:4`},
		{gateway("quota free {\ncalls many\n}"),
			`'aip_gateway': travel: quota free: calls: "many" is no rate; write for example 50/s, 600/m or 50/s ` +
				`burst 100, at Caddyfile:4`},
		{":8443 {\naip_gateway a2a/0.3 localhost:9101\n}\n",
			`'aip_gateway': localhost:9101: agent: "localhost:9101" is no http or https URL; write ` +
				`http://localhost:9101, at Caddyfile:2`},
		{":8443 {\naip_gateway a3a http://localhost:9101\n}\n",
			`'aip_gateway': localhost:9101: agent: there is no dialect "a3a"; this gateway can front a2a, ` +
				`a2a/0.3, a2a/1.0, a2a/1.0-grpc, a2a/1.0-rest, a2a/legacy, agentapi, aip, aip/2, aun, aun-assignee, ` +
				`at Caddyfile:2`},
		{":8443 {\naip_gateway a2a/0.3 http://me:hunter2@localhost:9101\n}\n",
			`'aip_gateway': localhost:9101: agent: put credentials into header_up, not into the URL, which is ` +
				`logged, at Caddyfile:2`},
		{app("drain -1s"),
			`'aip': drain is -1s, but must not be negative, at Caddyfile:3`},
		{app("traces {\nlink ftp://traces.example.com/{trace_id}\n}"),
			`'aip': traces: link is "ftp://traces.example.com/{trace_id}", but must be an http or https URL, at Caddyfile:4`},
		{app("traces {\nlink https://traces.example.com\n}"),
			`'aip': traces: link is "https://traces.example.com", but must have {trace_id} where the id of the trace ` +
				`stands, at Caddyfile:4`},
		// Options and directives of former versions.
		{"http://localhost {\naip_healthz\n}",
			`'aip_healthz': aip_healthz is gone; write aip_health with the option public, which answers the same, at ` +
				`Caddyfile:2`},
		{app("connections {\nloop off\n}"),
			`'aip': the option connections of aip is gone; remove it: the calls that follow on a connection are read ` +
				`in a loop wherever that is possible, at Caddyfile:3`},
		{app("store pebble {\nretention 1h\nmax_events 3\n}"),
			`'aip': the option max_events of store is gone; remove it: 10000 events of a task are kept, and ` +
				`max_bytes of them, at Caddyfile:5`},
		{app("revocation {\nocsp query http://127.0.0.1:1 {\nca ca.pem\n}\n}"),
			`'aip': "ca" belongs into revocation: write revocation { ca ... }, at Caddyfile:5`},
		{gateway("limits {\nbody 4MiB\ndepth 9\n}"),
			`'aip_gateway': travel: the option depth of limits is gone; remove it: a request may be nested 64 deep, at ` +
				`Caddyfile:5`},
		{app("notify {\nattempts 500\n}"),
			`'aip': notify: attempts is 500, but must be 1 to 100, at Caddyfile:4`},
		{app("identities {\nmy-agent alice.aid.pub\n}"),
			`'aip': identities: "my-agent": the AIC has 8 characters, neither the 32 of an AIC of v01.00 nor the ` +
				`dots of a later one, at Caddyfile:3`},
		{app("store pebble {\nretention 1h\nmax_bytes 3KiB\n}"),
			`'aip': store: max_bytes is 3072, but must be at least 64KiB, at Caddyfile:5`},
		{app("amp /var/log/amp {\nnames words\n}"),
			`'aip': amp: names is "words", but must be camel or snake, at Caddyfile:4`},
		{":8443 {\naip_console {\nallow cancel everything\n}\n}\n",
			`'aip_console': allow has "everything", but must have some of [cancel fail replay ` +
				`endpoints leave try], at Caddyfile:3`},
		{":8443 {\naip_discovery {\nredirect example.com\n}\n}\n",
			`'aip_discovery': redirect: "example.com" is no http or https URL, at Caddyfile:3`},
		// Options in the wrong block, or misspelt.
		{gateway("header_up Authorization secret"),
			`'aip_gateway': travel: "header_up" belongs into agent: write agent a2a <url> { header_up ... }, at ` +
				`Caddyfile:3`},
		{gateway("retention 48h"),
			`'aip_gateway': travel: "retention" belongs into the global option aip: write aip { store pebble ` +
				`<directory> { retention ... } }, at Caddyfile:3`},
		{gateway("timeout 5m"),
			`'aip_gateway': travel: "timeout" belongs into agent: write agent a2a <url> { timeout ... }, ` +
				`at Caddyfile:3`},
		{gateway("jwt https://issuer.example.com"),
			`'aip_gateway': travel: "jwt" belongs into caller or identity: write agent a2a <url> { caller { jwt ` +
				`... } }, at Caddyfile:3`},
		{gateway("agent {\ncallers a2a\n}"),
			`'aip_gateway': travel: "callers" belongs into aip_gateway: write aip_gateway { callers ... }, at ` +
				`Caddyfile:4`},
		{gateway("client_auth"),
			`'aip_gateway': travel: "client_auth" belongs into the site, beside aip_gateway: write tls { ` +
				`client_auth { ... } }, at Caddyfile:3`},
		{gateway("aip_console"),
			`'aip_gateway': travel: "aip_console" belongs into the site, beside aip_gateway: write aip_console, ` +
				`at Caddyfile:3`},
		{app("identity off"),
			`'aip': "identity" belongs into aip_gateway or agent: write aip_gateway { identity ... }, at ` +
				`Caddyfile:3`},
		{app("eab {file.eab.json}"),
			`'aip': "eab" belongs into certificates: write certificates <directory> { eab ... }, at Caddyfile:3`},
		{app("revocation {\nacps https://ca.example {\nrate 50/m\n}\n}"),
			`'aip': "rate" belongs into revocation: write revocation { rate ... }, at Caddyfile:5`},
		{gateway("idenity off"),
			`'aip_gateway': travel: there is no "idenity" in aip_gateway; did you mean "identity"?, at ` +
				`Caddyfile:3`},
		{gateway("agent a2a http://127.0.0.1:9102"),
			`'aip_gateway': travel: the agent is given twice; an aip_gateway fronts one. Behind aip_gateway or ` +
				`behind agent, write it once, at Caddyfile:3`},
	} {
		_, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(tt.file), map[string]any{"filename": "Caddyfile"})
		if err == nil {
			err = errors.New("none")
		}
		got := strings.TrimPrefix(err.Error(), "parsing caddyfile tokens for ")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("of\n%s\nis said (-want +got):\n%s", tt.file, diff)
		}
	}
}

// TestBlocks holds that every block that is ours is known by its options, and that none has a mistake.
func TestBlocks(t *testing.T) {
	all, opened := grammar(allBlocks), 0
	err := all.Each(func(b conf.Block) {
		opened++
		if len(b.Written) != len(b.Path) {
			t.Errorf("how %v is written is not known: %v", b.Path, b.Written)
		}
	})
	if blocks := strings.Count(allBlocks, "{"); err != nil || opened != blocks {
		t.Errorf("%d of %d blocks are read: %v", opened, blocks, err)
	}
}

// TestAllBlocks holds that no block is missing: each option of each block is tried as one, behind up to three values.
func TestAllBlocks(t *testing.T) {
	// blocksIn yields the blocks in a text, and what tells blocks apart: the last of their names and those of the options.
	blocksIn := func(text string, yield func(b conf.Block, block string)) {
		some := grammar(text)
		if strings.HasPrefix(text, "aip {") {
			some.Read = func(p *conf.Parser) { new(App).readFrom(p) }
		}
		_ = some.Each(func(b conf.Block) {
			yield(b, fmt.Sprint(b.Path[len(b.Path)-1], slices.Sorted(maps.Keys(b.Options))))
		})
	}
	listed := make(map[string]bool)
	blocksIn(allBlocks, func(_ conf.Block, block string) { listed[block] = true })
	blocksIn(allBlocks, func(around conf.Block, _ string) {
		written := strings.Join(around.Written, " {\n") + " {\n"
		end := strings.Repeat("}\n", len(around.Written))
		for option := range around.Options {
			for _, values := range []string{"", " a", " a b", " a b c"} {
				blocksIn(written+option+values+" {\n}\n"+end, func(b conf.Block, block string) {
					if !listed[block] {
						t.Errorf("allBlocks does not have %v", b.Path)
						listed[block] = true
					}
				})
			}
		}
	})
}

// TestShortForm holds that an agent that stands behind aip_gateway has its options in the block agent.
func TestShortForm(t *testing.T) {
	of := func(directive string) string { return adapt(t, ":8443 {\n\t"+directive+"\n}\n") }
	short := of("aip_gateway a2a/0.3 http://a:1 {\n\t\tagent {\n\t\t\ttimeout 1m\n\t\t}\n\t}")
	long := of("aip_gateway {\n\t\tagent a2a/0.3 http://a:1 {\n\t\t\ttimeout 1m\n\t\t}\n\t}")
	if diff := cmp.Diff(long, short); diff != "" || strings.HasPrefix(short, "error") {
		t.Errorf("the short form (-long +short):\n%s", diff)
	}
}
