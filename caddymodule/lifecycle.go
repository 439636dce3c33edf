// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/node"
)

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
	if err := errors.Join(a.checkShared(g), a.AMP.check(g.AIC, a.Certificates.Obtains(g.AIC))); err != nil {
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
		Active: a.active, AUN: a.AUN.config(a.identities, a.access.Of),
		Monitoring: a.AMP.config(a.Certificates.ClientCert), Host: a}
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
