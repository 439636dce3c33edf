// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/shown"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Question is a call about which the policies of a configuration are asked.
type Question struct {
	Leader      string            // its AIC, or its name with the prefix that it has; empty for who has proven nothing
	Certificate *x509.Certificate // of the caller; nil for none
	Claims      string            // of the caller's token, as a JSON object; empty for none
	Dialect     string            // empty for the first one that the Partner serves
	Command     string            // a command of AIP, or another operation
	Method      string            // the dialect's own name of it; empty for none
	Skill       string            // that is asked for; empty for none
	Mount       string            // only of the Partner that is mounted there; empty for all
}

// Decision is what the policy of one Partner says.
type Decision struct {
	Partner string   `json:"partner"`
	Mount   string   `json:"mount"` // with the slash at its end
	Allowed bool     `json:"allowed"`
	Rule    string   `json:"rule,omitempty"`   // that decides; empty without rules
	DryRun  bool     `json:"dryRun,omitempty"` // the rule would deny the call, but the policy is only tried
	Listed  bool     `json:"listed"`           // the list of allow has the Leader, or there is none
	Asks    bool     `json:"asks,omitempty"`   // a decision point is asked in addition
	Quotas  []string `json:"quotas,omitempty"` // that count the call
}

// String returns a sentence for people.
func (d *Decision) String() string {
	var s string
	switch {
	case !d.Listed:
		return "denied: the list allow does not have the Leader"
	case d.Rule == "":
		s = "allowed: there are no rules"
	case d.DryRun:
		s = "allowed, since the policy is only tried: the rule " + d.Rule + " would deny it"
	case !d.Allowed:
		return "denied by the rule " + d.Rule
	default:
		s = "allowed by the rule " + d.Rule
	}
	if d.Asks {
		s += ", if the decision point allows it"
	}
	if len(d.Quotas) > 0 {
		s += "; counted by " + strings.Join(d.Quotas, ", ")
	}
	return s
}

// AskPolicies returns what the policies of a configuration say about a call; without a file, of the Caddyfile of the
// current folder. It changes nothing, and counts nothing.
func AskPolicies(file, adapter string, q *Question) (list []Decision, err error) {
	if err := quiet(); err != nil {
		return nil, err
	}
	text, _, err := load(file, adapter)
	if err != nil {
		return nil, err
	}
	var c configuration
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	app, provisioning, end, err := c.app(context.Background())
	if err != nil {
		return nil, err
	}
	defer end()
	if !slices.Contains(gateway.Commands(), q.Command) {
		return nil, fmt.Errorf("there is no command %q; use %s", q.Command, shown.OneOf(gateway.Commands()))
	}
	setup, err := app.Setup(provisioning, handlers(c.partners()))
	if err != nil {
		return nil, err
	}
	for i := range setup.Mounts {
		m := &setup.Mounts[i]
		if m.Err != nil {
			return nil, Advised(m.Err)
		}
		if q.Mount == "" || strings.TrimRight(q.Mount, "/") == m.Path {
			list = append(list, m.decide(q))
		}
		m.Gateway.Close()
	}
	if len(list) == 0 {
		return nil, errors.New("there is no such aip_gateway in the configuration")
	}
	return list, nil
}

// decide returns what the policy of a Mount says about a call.
func (m *Mount) decide(q *Question) Decision {
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
	c := policy.Call{Peer: &peer, Leader: leader, Mount: m.Path, Dialect: q.Dialect, Command: q.Command,
		Method: q.Method}
	if c.Dialect == "" {
		c.Dialect = m.Gateway.Dialects()[0]
	}
	if q.Skill != "" {
		c.Skills = []string{q.Skill}
	}
	d := Decision{Partner: m.Partner, Mount: m.Path + "/"}
	d.Listed = len(m.Allow) == 0 || peer.Kind == identity.AICKind &&
		slices.ContainsFunc(m.Allow, func(s string) bool { return identity.AIC(strings.ToUpper(s)).Is(leader) })
	d.Allowed = d.Listed
	if m.Policy != nil {
		e := m.Policy.Explain(&c)
		d.Rule, d.Asks, d.Quotas = e.Rule, e.Asks, e.Quotas
		d.DryRun = e.Denied && e.DryRun
		d.Allowed = d.Listed && (!e.Denied || e.DryRun)
	}
	return d
}
