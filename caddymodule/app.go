// SPDX-License-Identifier: Apache-2.0

// Package caddymodule hosts the gateway in Caddy: the aip app, which owns the store and the life-cycle of all
// tasks, and the aip_gateway handler, which is one Partner. It holds configuration, hosting and the admin API only.
package caddymodule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/accesslog"
	"github.com/aip-gateway/aip-gateway/caddymodule/acps"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
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

	mu       sync.Mutex
	members  []*Gateway     // handlers of this configuration; complete once all are provisioned
	consoles []*Console     // likewise
	servers  doctor.Servers // likewise
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "aip", New: func() caddy.Module { return new(App) }}
}

// Provision sets up the app. It opens nothing, so that a configuration can be validated beside a running one.
func (a *App) Provision(ctx caddy.Context) error {
	a.access.Core = ctx.Logger(new(caddyhttp.App)).Core()
	if err := a.read(ctx); err != nil {
		return err
	}
	events, err := ctx.App("events")
	if err != nil {
		return err
	}
	if err := events.(*caddyevents.App).On("stopping", a); err != nil {
		return err
	}
	a.metrics = ctx.GetMetricsRegistry()
	if err := a.register(a.metrics); err != nil {
		return err
	}
	if a.AUN != nil {
		agents.WarnOfOrphans(ctx.Slogger(), a.AUN.roots)
	}
	return nil
}

// read sets defaults, and reads what the configuration names.
func (a *App) read(ctx caddy.Context) (err error) {
	a.configuration = process.NewConfiguration()
	conf.OrDefault(&a.Drain, caddy.Duration(10*time.Second))
	if a.identities, err = readIdentities(a.Identities); err != nil {
		return err
	}
	a.pki.Process, a.pki.Configuration, a.pki.Certificates = processPKI, a.configuration, a.Certificates
	a.pki.At, a.pki.Current = a.partnersAt, a.currentCertificates
	if a.pki.Issuer, err = a.Issuer.Read(); err != nil {
		return err
	}
	if a.Registry != nil {
		if a.account, err = a.Registry.Account(ctx.Storage()); err != nil {
			return err
		}
		if a.feed, err = a.Registry.Feed(&process.Feeds, logOf("aip")); err != nil {
			return err
		}
		a.active = node.NewActive(a.feed, a.account)
	}
	if a.admin, err = adminOf(ctx); err != nil {
		return err
	}
	a.allServers = func() []*caddyhttp.Server { return serversOf(ctx) }
	if a.AUN != nil {
		if err := a.AUN.provision(); err != nil {
			return err
		}
	}
	err = errors.Join(a.loadStore(ctx), a.Notify.Provision(), a.pki.Ask(a.Revocation), a.AMP.provision(),
		a.Discovery.Provision(), a.Find.Provision(a.Registry, &process.Feeds, logOf("aip")))
	if a.Certificates != nil {
		var follow func() (*node.Feed, error)
		if a.Registry != nil {
			follow = func() (*node.Feed, error) { return a.Registry.Feed(&process.Feeds, logOf("aip")) }
		}
		err = errors.Join(err, a.Certificates.Provision(ctx.Storage(), follow))
	}
	return err
}

// PKI implements what the modules of the package pki find in the app.
func (a *App) PKI() *pki.Host { return &a.pki }

// Validate checks the configuration.
func (a *App) Validate() error {
	return cmp.Or(conf.NotNegative("drain", a.Drain), a.Notify.Validate(), a.Traces.validate())
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

// add makes a handler a member of this configuration. Several handlers may front one agent under one name. Two agents
// may not have one name, because their tasks would be stored together, nor one AID.
func (a *App) add(g *Gateway) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, other := range a.members {
		one, two := &other.Agent, &g.Agent
		if other.name() == g.name() && (one.URL != two.URL || one.Name() != two.Name() || one.Dialect != two.Dialect) {
			return fmt.Errorf("two aip_gateway handlers answer under %q but front different agents (%s %s and %s %s); "+
				"give each its own aic",
				g.name(), one.Dialect, one.Name(), two.Dialect, two.Name())
		}
		if err := checkTitles(other, g); err != nil {
			return err
		}
		if err := checkQuotas(other, g); err != nil {
			return err
		}
		if g.aid() != "" && other.aid() == g.aid() && other.name() != g.name() {
			return fmt.Errorf("two aip_gateway handlers have the AID %s but are different Partners; give each its own aid",
				g.aid())
		}
	}
	if err := errors.Join(a.checkShared(g), a.AMP.check(g)); err != nil {
		return err
	}
	a.members = append(a.members, g)
	return nil
}

// Start opens the store, or takes over the open store of the running configuration, and starts the handlers' Partners.
func (a *App) Start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := errors.Join(a.judgeConsoles(), a.checkShown()); err != nil {
		return err
	}
	log := logOf("aip")
	if err := a.configuration.Open(node.Store{Driver: a.store, Name: store.NameOf(a.store)}); err != nil {
		return err
	}
	a.assignTitles()
	a.findSenders()
	a.warnOfAddresses()
	a.pki.FollowSources()
	a.Find.Start()
	var account pki.RegistryAccount
	if a.account != nil {
		account = a.account
	}
	a.Certificates.Start(aicsOf(a.members), a.pki.Checkers(), account, logOf("aip"))
	a.Notify.Guard().Closed = a.closedPlaces()
	a.pki.Loaded = a.loadedCertificates()
	a.mounts = make(map[string][]*Gateway)
	for _, g := range a.members {
		a.mounts[g.name()] = append(a.mounts[g.name()], g)
	}
	partners := partnersOf(a.members)
	a.operated = a.forOperators(partners)
	settings := node.Settings{Notify: *a.Notify.Config(dialectOf), Partners: partners, Drain: time.Duration(a.Drain),
		Active: a.active, AUN: a.AUN.config(a), Monitoring: a.AMP.config(a), Host: a}
	settings.Notify.Certificates = shownTo(a.members, a.Certificates)
	if err := a.configuration.Start(settings); err != nil {
		return err
	}
	a.configuration.Go(func(ctx context.Context) { a.Certificates.Work(ctx, logOf("aip")) })
	a.followRegistrations()
	a.warnOfUnrouted()
	a.warnOfUnreachable(log)
	a.warnOfSharedTasks()
	a.pki.WarnOfCertificates(log, time.Now())
	return nil
}

// Stop implements caddy.App.
func (a *App) Stop() error {
	a.configuration.Stop()
	return nil
}

// Cleanup releases the store as soon as no request of this configuration is in flight.
func (a *App) Cleanup() error {
	a.pki.LeaveSources()
	a.Find.Stop()
	a.Certificates.Close()
	if a.feed != nil {
		a.feed.Leave()
	}
	return a.configuration.Close()
}

// Handle drains the streams when this configuration is about to stop, before any app is stopped: at an exit, Caddy
// waits for the requests of its servers, among them streams and calls that wait for a task. Before that, at an exit,
// the tasks are handed over. It implements caddyevents.Handler.
func (a *App) Handle(context.Context, caddy.Event) error {
	if caddy.Exiting() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(a.Drain))
		defer cancel()
		a.configuration.HandOver(ctx)
	}
	a.configuration.Drain()
	if caddy.Exiting() {
		process.Exit()
	}
	return nil
}

// Interface guards.
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
