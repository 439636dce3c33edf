// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"strings"
	"testing"
)

// TestWithoutItsAIC: what needs the AIC of the Partner is accepted where the registry assigns it, and not where there
// is none.
func TestWithoutItsAIC(t *testing.T) {
	for name, set := range map[string]func(*Gateway){
		"group": func(g *Gateway) { g.Group = &Group{AllowBrokers: []string{"mq.example"}} },
		"aac":   func(g *Gateway) { g.AAC = &AAC{Issuers: []Issuer{{Issuer: "https://issuer.example"}}} },
	} {
		for _, aic := range []string{"", registeredAIC} {
			g := &Gateway{AIC: aic, PublicURL: "https://agent.example", Callers: []string{"aip/2"},
				Agent: AgentConfig{URL: "https://agent.example/rpc", Dialect: "a2a/1.0"}}
			set(g)
			g.fillDefaults()
			err := g.check()
			if aic == registeredAIC && err != nil || aic == "" && (err == nil || !strings.Contains(err.Error(), "aic")) {
				t.Errorf("%s with the aic %q: %v", name, aic, err)
			}
		}
	}
}
