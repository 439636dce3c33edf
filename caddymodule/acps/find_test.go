// SPDX-License-Identifier: Apache-2.0

package acps

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/node"
)

// TestNoSuchSetting holds that settings are refused, in JSON too, that a registry does not have.
func TestNoSuchSetting(t *testing.T) {
	f := &Find{Registries: []FindServer{{URL: "https://a.example", Cert: "cert.pem", Key: "key.pem"}}}
	t.Cleanup(f.Stop)
	err := f.Provision(nil, new(node.Feeds), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "a registry is shown no certificate") {
		t.Errorf("of find, the error is %v", err)
	}
}

// TestAgentTwice holds that an agent is at one URL.
func TestAgentTwice(t *testing.T) {
	const aic = "10001000011K912345E789ABCDEF2353"
	f := &Find{Agents: []FoundAgent{
		{AIC: aic, URL: "https://a.example"}, {AIC: strings.ToLower(aic), URL: "https://b.example"},
	}}
	err := f.Provision(nil, new(node.Feeds), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "find: agent: "+aic+" is given twice") {
		t.Errorf("the error is %v", err)
	}
}
