// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"strings"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// runningFindings returns what a gateway running with the configuration knows, and the configuration does not. It is
// nothing if no gateway runs.
func runningFindings(ctx context.Context, config, adapter string) (findings []doctor.Finding) {
	if _, err := os.Stat("Caddyfile"); config == "" && err == nil {
		config = "Caddyfile"
	}
	flags := adminFlags{config: config, adapter: adapter}
	var health adminapi.Health
	if _, err := flags.ask(http.MethodGet, adminapi.HealthReady, nil, nil, &health); err != nil {
		return nil
	}
	add := func(check string, s doctor.Status, subject, text string) {
		findings = append(findings, doctor.Finding{Check: check, Status: s, Subject: subject, Text: text})
	}
	for _, s := range health.Revocation {
		if s.Reason != "" {
			name := cmp.Or(s.Location, s.Kind) // one of ocsp may name no responder
			add(doctor.CheckRevocation, doctor.Warning, name, "the gateway that runs has nothing newer: "+s.Reason)
		}
	}
	for _, r := range health.Roots {
		if len(r.NotInUse) > 0 {
			add(doctor.CheckClientAuth, doctor.Warning, r.Files, "the gateway that runs does not use the roots "+
				strings.Join(r.NotInUse, ", ")+" yet; run caddy reload --force")
		}
		if r.Reason != "" {
			add(doctor.CheckClientAuth, doctor.Warning, r.Files, "the gateway that runs cannot read the roots again: "+r.Reason)
		}
	}
	return append(findings, cardFindings(ctx, health.Agents)...)
}
