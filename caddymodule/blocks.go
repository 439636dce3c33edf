// SPDX-License-Identifier: Apache-2.0

package caddymodule

import "github.com/aip-gateway/aip-gateway/caddymodule/conf"

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
