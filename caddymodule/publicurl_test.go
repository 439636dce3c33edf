// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// TestPublicURL: {AIC} stands for the AIC, once there is one.
func TestPublicURL(t *testing.T) {
	const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	for aic, want := range map[string]string{"": "https://a.example/{AIC}/x/", aic: "https://a.example/" + aic + "/x/"} {
		g := &Gateway{AIC: aic, PublicURL: "https://a.example/{AIC}/x/"}
		if got := g.publicURL(); got != want {
			t.Errorf("%q: %s, want %s", aic, got, want)
		}
		if err := conf.PublicURL("public_url", g.PublicURL); err != nil {
			t.Error(err)
		}
	}
}
