// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aip-gateway/aip-gateway/caddymodule/rules"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// newPolicy returns the policy of the handler; nil if it has none.
func (g *Gateway) newPolicy() (*policy.Policy, error) {
	if g.Policy == nil && len(g.Quotas) == 0 {
		return nil, nil
	}
	c := policy.Config{Ready: g.app.configuration.Ready, Meter: process.PolicyMeter(g.name()), Log: g.log}
	if g.Policy != nil && g.Policy.Decide != nil {
		var err error
		if g.point, err = g.Policy.Decide.Open(g.AIC); err != nil {
			return nil, fmt.Errorf("policy: decide: %w", err)
		}
		c.Further = g.point.Decide
	}
	return g.compilePolicy(c)
}

// checkPolicy checks the rules and the quotas.
func (g *Gateway) checkPolicy() error {
	if g.Policy != nil && len(g.Policy.Rules) == 0 && g.Policy.Decide == nil {
		return errors.New("policy: it has no rules")
	}
	_, err := g.compilePolicy(policy.Config{Meter: new(policy.Meter)})
	return err
}

// compilePolicy returns the policy of the rules and the quotas. c says how it works.
func (g *Gateway) compilePolicy(c policy.Config) (*policy.Policy, error) {
	c.Partner = g.name()
	c.Names = policy.Names{Commands: gateway.Commands(), Dialects: gateway.CallerDialects()}
	if g.Policy != nil {
		c.DryRun = g.Policy.DryRun
		for i := range g.Policy.Rules {
			r, err := g.Policy.Rules[i].Config()
			if err != nil {
				return nil, fmt.Errorf("policy: %w", err)
			}
			c.Rules = append(c.Rules, r)
		}
	}
	for i := range g.Quotas {
		q, err := g.Quotas[i].Config()
		if err != nil {
			return nil, err
		}
		c.Quotas = append(c.Quotas, q)
	}
	p, err := policy.New(c)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

// checkQuotas refuses quotas of one name that differ: they count together.
func checkQuotas(one, two *Gateway) error {
	for i := range one.Quotas {
		a := &one.Quotas[i]
		j := slices.IndexFunc(two.Quotas, func(b rules.Quota) bool { return b.Name == a.Name })
		if j >= 0 && fmt.Sprint(*a) != fmt.Sprint(two.Quotas[j]) {
			return fmt.Errorf("the quota %s is not the same in two aip_gateway handlers, although they count together; "+
				"write it once, as a snippet that both import, or give them two names", a.Name)
		}
	}
	return nil
}
