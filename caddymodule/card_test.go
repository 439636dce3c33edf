// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
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

// TestRegistered reads the ACS that is registered when it is asked for, and no more of it than one may have.
func TestRegistered(t *testing.T) {
	name := filepath.Join(t.TempDir(), "acs.json")
	t.Setenv("AIP_TEST_ACS", name)
	cards, err := (&CardConfig{Registered: "{env.AIP_TEST_ACS}"}).cards()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cards.Registered(t.Context()); err == nil {
		t.Error("there is no file, and no error")
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("x", acs.MaxSize+10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if body, err := cards.Registered(t.Context()); err != nil || len(body) != acs.MaxSize+1 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if cards, err := (&CardConfig{}).cards(); err != nil || cards.Registered != nil {
		t.Errorf("without the option: %v", err)
	}
	if _, err := (&CardConfig{Registered: "{env.AIP_NO_SUCH_FILE}"}).cards(); err == nil {
		t.Error("a placeholder without a value is accepted")
	}
}
