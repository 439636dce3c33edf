// SPDX-License-Identifier: Apache-2.0

// Package caddymodule hosts the gateway in Caddy: the aip app, which owns the store and the life-cycle of all
// tasks, and the aip_gateway handler, which is one Partner. It holds configuration, hosting and the admin API only.
package caddymodule

import (
	"bytes"
	"cmp"
	"encoding/json"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/accesslog"
	"github.com/aip-gateway/aip-gateway/caddymodule/acps"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/caddymodule/webhooks"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator"
)

func init() { caddy.RegisterModule(new(App)) }

// App stores the tasks of all aip_gateway handlers, and has their common settings. All of them are optional.
type App struct {
	// The store of tasks: pebble, memory or jetstream, see docs/configuration/stores.md. Default: pebble, in Caddy's data
	// directory.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=aip.stores inline_key=driver"`

	// Webhooks, and pushes of agents. See docs/webhooks.md.
	Notify webhooks.Config `json:"notify,omitzero"`

	// Links to traces.
	Traces Traces `json:"traces,omitzero"`

	// Names of the same agent, to the gateway one Leader or one Partner: its AIC first, then its AID (or aid:<aid>) and
	// its other names, jwt:<issuer>|<sub> or key:<name>. An agent without an AIC begins with another name. Default: none.
	Identities map[string]Names `json:"identities,omitempty"`

	// The gateway as a gateway of AUN: clients connect at aip_aun, and reach the Partners with aun in callers. See
	// docs/aun.md#clients-of-aun. Default: none.
	AUN *AUN `json:"aun,omitempty"`

	// The issuer of the tokens in agent { caller { jwt } }. Default: none.
	Issuer *pki.OwnIssuer `json:"issuer,omitempty"`

	// Sources about revoked certificates, for each call, each open stream, and the verifier aip_revocation. See
	// docs/certificates.md#certificates-that-are-revoked. Default: none; a certificate counts until it expires.
	Revocation *pki.Revocation `json:"revocation,omitempty"`

	// Records of AMP (v02.02) about each Partner with an aic, in amp_<type>_aip-gateway.jsonl. See
	// docs/discovery.md#alive. Default: none.
	AMP *AMP `json:"amp,omitempty"`

	// Discovery servers (ADP) for `caddy aip discover check`.
	Discovery *acps.Discovery `json:"discovery,omitempty"`

	// Servers with the places of agents given by their AIC: registries first, then discovery servers, then agent. See
	// docs/discovery.md#agents-by-their-aic. Default: registry, if it is set.
	Find *acps.Find `json:"find,omitempty"`

	// The registry of ACPs 2 for Partners with aic registered. A Partner disabled there takes no calls. See
	// docs/discovery.md#registering-it. Default: none.
	Registry *acps.Registry `json:"registry,omitempty"`

	// The authority of ACPs for the certificates of Partners. Sites show these by get_certificate aip, connections by
	// client_cert aip. See docs/certificates.md. Default: none.
	Certificates *pki.Certificates `json:"certificates,omitempty"`

	// The time for streams to end at a reload or an exit, one by one, with the time to reconnect. At an exit, waiting
	// calls are answered within it, with the task as it is. Default: 10s.
	Drain caddy.Duration `json:"drain,omitempty"`

	written    store.Written // of the store, while the App is read in a Caddyfile; nil for another driver
	store      store.Driver
	identities *identity.Identities
	account    *registry.Account          // at the registry; nil for none
	feed       *node.Feed                 // of the registry; nil for none
	active     *node.Active               // likewise: which Partners it has as active
	admin      adminAPI                   // of Caddy
	allServers func() []*caddyhttp.Server // of Caddy, once all is provisioned
	metrics    *prometheus.Registry       // of this configuration

	operated *operator.Configuration // set by Start
	mounts   map[string][]*Gateway   // likewise: the members, by their names

	access accesslog.Logs

	pki           pki.Host            // what its sites show
	configuration *node.Configuration // of the process

	mu      sync.Mutex
	members []*Gateway     // handlers of this configuration; complete once all are provisioned
	servers doctor.Servers // likewise
}

// adminAPI is how the admin API of a configuration is asked.
type adminAPI struct {
	at   caddy.NetworkAddress // the zero value if the API is off
	host string               // that requests name
	from string               // the origin that they must name; empty for none
}

// Names are other ids of an agent. In JSON, a text may stand for one.
type Names []string

// UnmarshalJSON reads one name, or a list.
func (n *Names) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		*n = make(Names, 1)
		return json.Unmarshal(b, &(*n)[0])
	}
	return json.Unmarshal(b, (*[]string)(n))
}

// MarshalJSON writes one name as a text.
func (n Names) MarshalJSON() ([]byte, error) {
	if len(n) == 1 {
		return json.Marshal(n[0])
	}
	return json.Marshal([]string(n))
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "aip", New: func() caddy.Module { return new(App) }}
}

// PKI implements what the modules of the package pki find in the app.
func (a *App) PKI() *pki.Host { return &a.pki }

// Validate checks the configuration.
func (a *App) Validate() error {
	return cmp.Or(conf.NotNegative("drain", a.Drain), a.Notify.Validate(), a.Traces.validate())
}

// Interface guards.
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
