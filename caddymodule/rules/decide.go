// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/trust/policy/decide"
)

// DecisionPoint is an external decision point, by the data API of Open Policy Agent. A decision may take 2s; a call
// without one is denied.
type DecisionPoint struct {
	// The URL of the document, such as http://127.0.0.1:8181/v1/data/aip/allow.
	URL string `json:"url"`

	// Networks of the decision point although not public, also by plain http. Default: the loopback addresses.
	AllowNetworks []string `json:"allow_networks,omitempty"`

	// PEM files with its roots. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// PEM files with the client certificate for it, and its key.
	Cert string `json:"cert,omitempty"`

	// Default: none.
	Key string `json:"key,omitempty"`
}

// loopback is where a decision point may be by default: beside the gateway.
var loopback = []string{"127.0.0.0/8", "::1/128"}

// Open returns the decision point for a Partner with an AIC, or with none.
func (d *DecisionPoint) Open(aic string) (*decide.Point, error) {
	if len(d.AllowNetworks) == 0 {
		d.AllowNetworks = loopback
	}
	c := decide.Config{URL: d.URL, Timeout: decide.DefaultTimeout, AIC: aic}
	var err error
	if c.Dialer.Policy, err = conf.Networks(d.AllowNetworks); err != nil {
		return nil, err
	}
	t := agents.TLS{CA: d.CA, Cert: d.Cert, Key: d.Key}
	if c.Dialer.TLS, err = t.Config(caddy.NewReplacer(), nil, nil); err != nil {
		return nil, err
	}
	return decide.New(c)
}

// decisionPointOption returns what reads a decision point: its URL, and its block.
func decisionPointOption(p *conf.Parser, into **DecisionPoint) func() {
	return func() {
		d := new(DecisionPoint)
		*into = d
		p.Word(&d.URL)()
		p.Block("decide", conf.Options{
			"allow_networks": p.Words(&d.AllowNetworks),
			"ca":             p.Words(&d.CA),
			"client_cert":    p.CertAndKey(&d.Cert, &d.Key),
		})
	}
}
