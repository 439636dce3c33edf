// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"
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

// PolicyAsker is the app aip of a configuration, decoded but not provisioned.
type PolicyAsker interface {
	// AskPolicies returns what the policies of Partners say about a call. It changes nothing, and counts nothing.
	// The context has the storage of the configuration.
	AskPolicies(ctx caddy.Context, partners []Partner, q *Question) ([]Decision, error)
}

// AskPolicies returns what the policies of a configuration say about a call; without a file, of the Caddyfile of the
// current folder. It changes nothing.
func AskPolicies(file, adapter string, q *Question) ([]Decision, error) {
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
	app, err := decodeApp(c.Apps.AIP)
	if err != nil {
		return nil, err
	}
	asker, ok := app.(PolicyAsker)
	if !ok {
		return nil, fmt.Errorf("the app aip of this program has no policies")
	}
	provisioning, err := c.provisioning(context.Background())
	if err != nil {
		return nil, err
	}
	return asker.AskPolicies(provisioning, handlers(c.partners()), q)
}

// decodeApp decodes the app aip.
func decodeApp(app json.RawMessage) (caddy.Module, error) {
	info, err := caddy.GetModule("aip")
	if err != nil {
		return nil, err
	}
	module := info.New()
	if len(app) > 0 {
		if err := caddy.StrictUnmarshalJSON(app, module); err != nil {
			return nil, fmt.Errorf("the app aip cannot be decoded: %w; correct it", err)
		}
	}
	return module, nil
}

// handlers returns the Partners of a configuration without how requests get to them.
func handlers(mounted []mounted) []Partner {
	partners := make([]Partner, len(mounted))
	for i := range mounted {
		partners[i] = mounted[i].Partner
	}
	return partners
}
