// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

func init() { conf.Register(grammar(allBlocks)) }

// grammar returns a text that has blocks of the directive aip_gateway, and behind it of the global option aip.
func grammar(text string) conf.Grammar {
	return conf.Grammar{Text: text, Repeatable: repeatable, Gone: gone, Read: func(p *conf.Parser) {
		new(Gateway).read(p)
		new(App).readFrom(p)
	}}
}

// repeatable are the options that may stand in a block more than once.
var repeatable = []string{"header_up", "eab", "allow", "allow_networks", "certificate_for", "signing_key", "jwt_key",
	"allow_brokers", "allow_exchanges", "deny", "certificate", "claim", "quota", "sign", "aac issuer", "identity accept",
	"identity jwt", "identity oidc", "find registry", "find discovery", "find agent",
	"revocation crl", "revocation ocsp", "revocation acps", "revocation registry"}

// allBlocks has every block of the directive aip_gateway and of the global option aip, once: what client_cert_header
// has in common with the option stands in the option. Which options a block has, the parser alone says: it reads this
// text.
const allBlocks = `aip_gateway {
	agent a2a <url> {
		caller {
			jwt {
			}
		}
		tls {
		}
	}
	identity required {
		client_cert_header <name> <form> from <address> {
		}
		jwt {
		}
		oidc <issuer> {
		}
		keys <file> {
		}
	}
	aac {
	}
	policy {
		allow {
		}
		deny {
		}
		decide <url> {
		}
	}
	quota <name> {
	}
	timeouts {
	}
	limits {
	}
	card {
	}
	group {
		inbox <url> {
		}
		tls {
		}
	}
}
aip {
	store pebble <directory> {
	}
	store memory {
	}
	store jetstream <url> {
		tls {
		}
	}
	notify {
	}
	traces {
	}
	aun {
	}
	issuer <name> {
	}
	revocation {
		ocsp query {
		}
		acps <url> {
		}
		registry <url> {
		}
	}
	registry <url> {
	}
	certificates <directory> {
	}
	amp <directory> {
	}
	discovery <url> {
	}
	find {
		registry <url> {
		}
		discovery <url> {
		}
	}
}
`

// gone has the options of former versions, each with the gateway's way without it. A name is the path to the option in
// a Caddyfile, without arguments, and so the path in JSON, too. An option with a block is gone with all of it.
var gone = map[string]string{
	"aip store max_events":        "10000 events of a task are kept, and max_bytes of them",
	"aip store capacity":          "max_size bounds the store in memory; its default is 512 MiB",
	"aip streams":                 "a stream of HTTP/1.1 at rest leaves its request, and the Go runtime gives memory back",
	"aip connections":             "the calls that follow on a connection are read in a loop wherever that is possible",
	"aip revocation max_size":     "a list of up to 64 MiB is read",
	"aip revocation refresh":      "sources are asked every 5 minutes, and twice in max_age",
	"aip revocation ocsp timeout": "an answer may take 3s",
	"aip revocation acps timeout": "an answer may take 3s",
	"aip revocation degrade":      "grace has lists and answers count after their end",
	"aip notify concurrency":      "64 attempts run at the same time",
	"aip aun limits":              "20000 connections may be open, 64 of one AID, each with 64 calls and 256 tasks",
	"aip amp name":                "the names of all files end with aip-gateway; give each gateway a directory",
	"aip amp interval":            "there is a heartbeat every 15s",
	"aip amp max_size":            "a file is renamed from 16 MiB on",
	"aip amp keep":                "3 renamed files of each type are kept",

	"aip_gateway agent caller baggage":  "an agent learns the caller by headers or by jwt",
	"aip_gateway policy decide timeout": "a decision may take 2s, and a call without one is denied",
	"aip_gateway timeouts max_awaiting": "a task waits for its Leader for 30 days at most",
	"aip_gateway limits depth":          "a request may be nested 64 deep",

	"aip_gateway limits memory_per_leader":    "one Leader may use a quarter of memory",
	"aip_gateway group exchange_wait":         "a membership without its exchange ends after an hour",
	"aip_gateway group max_groups_per_leader": "500 groups of max_groups may be of one Leader",
	"aip_gateway group prefetch":              "the broker sends 64 messages of a group before the first is acknowledged",

	"aip_identify limits depth":             "a request may be nested 64 deep",
	"aip_identify limits memory_per_leader": "one Leader may use a quarter of memory",
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *App) UnmarshalJSON(text []byte) error {
	type plain App
	return conf.ReadJSON("aip", text, (*plain)(a))
}

// UnmarshalJSON implements json.Unmarshaler.
func (g *Gateway) UnmarshalJSON(text []byte) error {
	type plain Gateway
	return conf.ReadJSON("aip_gateway", text, (*plain)(g))
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *Identify) UnmarshalJSON(text []byte) error {
	type plain Identify
	return conf.ReadJSON("aip_identify", text, (*plain)(i))
}
