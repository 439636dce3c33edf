// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// AskPolicies implements doctor.PolicyAsker.
func (a *App) AskPolicies(
	ctx caddy.Context, partners []doctor.Partner, q *doctor.Question,
) (list []doctor.Decision, err error) {
	if !slices.Contains(gateway.Commands(), q.Command) {
		return nil, fmt.Errorf("there is no command %q; use %s", q.Command, conf.OneOf(gateway.Commands()))
	}
	provisioning, end := caddy.NewContext(ctx)
	defer end()
	if err := errors.Join(a.read(provisioning), a.Validate()); err != nil {
		return nil, err
	}
	for _, p := range partners {
		g, _, err := a.examined(ctx, p)
		if err != nil {
			return nil, doctor.Advised(err)
		}
		if mount := g.BasePath + "/"; q.Mount == "" || strings.TrimRight(q.Mount, "/")+"/" == mount {
			list = append(list, g.askPolicy(q))
		}
		g.gateway.Close()
	}
	if len(list) == 0 {
		return nil, errors.New("there is no such aip_gateway in the configuration")
	}
	return list, nil
}

// askPolicy returns what the policy of the handler says about a call.
func (g *Gateway) askPolicy(q *doctor.Question) doctor.Decision {
	peer := identity.Peer{Proof: identity.ByCertificate}
	if peer.Kind, peer.ID = identity.SplitLeader(q.Leader); peer.Kind != identity.AICKind || q.Claims != "" {
		peer.Proof = identity.ByToken
	}
	leader := q.Leader
	if aic, err := identity.ParseAIC(q.Leader); err == nil {
		leader, peer.ID = string(aic), string(aic)
	}
	if q.Leader == "" || !identity.Claimable(q.Leader) && peer.Kind == identity.AICKind {
		peer = identity.Peer{}
		if leader == "" {
			leader = "unverified:anonymous"
		}
	}
	if q.Certificate != nil {
		peer.Chains = [][]*x509.Certificate{{q.Certificate}}
	}
	if q.Claims != "" {
		peer.Claims = &identity.Claims{JSON: q.Claims}
	}
	c := policy.Call{Peer: &peer, Leader: leader, Mount: g.BasePath, Dialect: q.Dialect, Command: q.Command,
		Method: q.Method}
	if c.Dialect == "" {
		c.Dialect = g.gateway.Dialects()[0]
	}
	if q.Skill != "" {
		c.Skills = []string{q.Skill}
	}
	d := doctor.Decision{Partner: g.name(), Mount: g.BasePath + "/"}
	d.Listed = len(g.Allow) == 0 || peer.Kind == identity.AICKind &&
		slices.ContainsFunc(g.Allow, func(s string) bool { return identity.AIC(strings.ToUpper(s)).Is(leader) })
	d.Allowed = d.Listed
	if g.policy != nil {
		e := g.policy.Explain(&c)
		d.Rule, d.Asks, d.Quotas = e.Rule, e.Asks, e.Quotas
		d.DryRun = e.Denied && e.DryRun
		d.Allowed = d.Listed && (!e.Denied || e.DryRun)
	}
	return d
}
