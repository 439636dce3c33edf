// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// Setup implements doctor.Examiner.
func (a *App) Setup(ctx caddy.Context, partners []doctor.Partner) (*doctor.Setup, error) {
	if err := errors.Join(a.read(ctx), a.Validate()); err != nil {
		return nil, err
	}
	s := &doctor.Setup{Store: doctor.Store{Location: a.store.Location()}, InMemory: store.NameOf(a.store) == "memory"}
	s.Store.Driver, _ = a.store.(doctor.ExaminedStore)
	handlers := make([]*Gateway, len(partners))
	s.Mounts = make([]doctor.Mount, len(partners))
	for i, p := range partners {
		handlers[i], s.Mounts[i].Agent.Config, s.Mounts[i].Err = a.examined(ctx, p)
	}
	a.assignTitles()
	s.Obtained = a.keptCertificates(ctx)
	for i, g := range handlers {
		m := &s.Mounts[i]
		if m.Title = g.title(); m.Err == nil {
			g.describe(ctx, m)
		}
	}
	for _, r := range a.pki.Revocations() {
		s.Lists = append(s.Lists, r.Files()...) // the gateway that runs knows whether other sources answer
	}
	return s, nil
}

// examined returns the handler of a Partner, with its agent, to which nothing was sent yet.
func (a *App) examined(ctx context.Context, p doctor.Partner) (g *Gateway, agent gateway.AgentConfig, err error) {
	g = &Gateway{log: slog.New(slog.DiscardHandler), logsAccess: p.LogsAccess, logsCredentials: p.LogsCredentials}
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(p.Handler, &settings); err != nil {
		return g, agent, err
	}
	delete(settings, "handler")
	text, err := json.Marshal(settings)
	if err == nil {
		err = caddy.StrictUnmarshalJSON(text, g)
	}
	if err != nil {
		return g, agent, err
	}
	g.fillDefaults()
	if err := g.check(); err != nil {
		return g, agent, err
	}
	if err := g.findAIC(ctx, a); err != nil {
		return g, agent, err
	}
	config, err := g.prepare(a)
	if err != nil {
		return g, agent, err
	}
	if g.gateway, err = gateway.New(config); err != nil {
		return g, agent, err
	}
	return g, config.Agent, a.add(g)
}

// describe adds to a Mount what doctor examines of the handler.
func (g *Gateway) describe(ctx context.Context, m *doctor.Mount) {
	m.Door, m.Gateway = g.door(), g.gateway
	m.OnlyAUN = !slices.ContainsFunc(g.Callers, func(dialect string) bool { return dialect != gateway.AUN })
	m.OtherProofs, m.NeedsAIC, m.Logged = g.Identity.Others(), g.needsSender(), g.loggedSecrets()
	m.Agent.Name, m.Agent.Dialect = g.Agent.Name(), g.Agent.Speaks()
	_, waits := g.app.Certificates.ClientCert(g.AIC)
	if g.Agent.TLS.Obtained {
		m.Agent.Wait = waits
	}
	if g.registered {
		r := &doctor.Registration{At: g.registration()}
		if r.Record, r.Err = g.app.account.Record(ctx, r.At); r.Err == nil {
			r.AtMount = g.entityAtMount(r.Record)
		}
		m.Registration = r
	}
	switch {
	case g.compared && g.registered && g.AIC == "":
		m.ACS = doctor.DraftedACS
	case g.compared:
		m.ACS = doctor.RegisteredACS
	}
	if b := g.Group; b != nil {
		policy := *b.egress(g.app.Notify.Guard())
		m.Brokers = &doctor.Brokers{Dialer: &egress.Dialer{Policy: policy, TLS: b.tls, Timeout: doctor.Timeout}}
		if b.TLS.Obtained {
			m.Brokers.Wait = waits
		}
		for i, pattern := range b.AllowBrokers {
			m.Brokers.All = append(m.Brokers.All, doctor.Broker{Broker: b.brokers[i], Name: pattern, Option: "allow_brokers"})
		}
		if b.inbox != nil {
			m.Brokers.All = append(m.Brokers.All, doctor.Broker{Broker: b.inbox.Broker(), Name: b.Inbox, Option: "inbox"})
		}
	}
	m.Issuers, m.Allow, m.Policy = g.verifiers(), g.Allow, g.describedPolicy()
}

// describedPolicy returns what doctor examines of the rules and the quotas of a Partner; nil for none.
func (g *Gateway) describedPolicy() *doctor.Policy {
	if g.policy == nil {
		return nil
	}
	p := &doctor.Policy{Policy: g.policy}
	if g.point != nil {
		p.Point = g.point
	}
	if g.Policy != nil {
		p.DryRun = g.Policy.DryRun
		for i := range g.Policy.Rules {
			r := &g.Policy.Rules[i]
			p.Rules = append(p.Rules, doctor.Rule{Name: r.Name, HasAll: r.Match.IsEmpty(), NeedsProof: r.Match.NeedsProof()})
		}
	}
	for i := range g.Quotas {
		q := &g.Quotas[i]
		p.Quotas = append(p.Quotas, doctor.Quota{Name: q.Name, DryRun: q.DryRun, OfDay: q.Starts != "" || q.Bytes != ""})
	}
	return p
}

// keptCertificates returns the certificates that the authority has given, as the storage has them, and has connections
// of this examination show them. The authority is not asked.
func (a *App) keptCertificates(ctx context.Context) (all []doctor.Obtained) {
	if a.Certificates == nil {
		return nil
	}
	a.Certificates.Load(ctx, aicsOf(a.members), func(k *agentca.Keeper, err error) {
		o := doctor.Obtained{AIC: k.AIC, Unreadable: err}
		if err == nil {
			o.Status = k.Status()
			// Else no credential is needed, or the registry gives one.
			if o.Status.Account == "" && a.account == nil && !k.IsV1() {
				_, o.NoCredential = a.Certificates.Credential(ctx, k.AIC, nil)
			}
		}
		all = append(all, o)
	})
	return all
}

// Interface guards.
var _ doctor.Examiner = (*App)(nil)
