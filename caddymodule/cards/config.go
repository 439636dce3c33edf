// SPDX-License-Identifier: Apache-2.0

package cards

import (
	"context"
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
)

// Config is what the Partner's cards contain besides the content of the agent's card.
type Config struct {
	// The card of an agent with a signature: drop (ours without one), keep (the agent's unchanged, with its URLs) or
	// refuse (502). Default: drop.
	Signatures string `json:"signatures,omitempty"`

	// The version of the ACS. Default: 02.01 for an AIC with dots, otherwise 01.00.
	ACS string `json:"acs,omitempty"`

	// The Partner's version, another one for another content. Default: that in the agent's card.
	Version string `json:"version,omitempty"`

	// The provider. Default: that in the agent's card.
	Organization string `json:"organization,omitempty"`

	// Its URL. Default: that in the agent's card.
	OrganizationURL string `json:"organization_url,omitempty"`

	// Its department. Default: none.
	Department string `json:"department,omitempty"`

	// The code of its country. Default: CN.
	Country string `json:"country,omitempty"`

	// Its licence, required in ACS 01.00. Default: none.
	License string `json:"license,omitempty"`

	// The URL of aip_challenge for the CA, in ACS 01.00. Default: none.
	CAChallengeURL string `json:"ca_challenge_url,omitempty"`

	// Days of certificates, 1 to 1825, since ACS 02.01. Default: the CA decides.
	RequestedValidity int `json:"requested_validity,omitempty"`

	// The file with the ACS as registered; a warning names differences. Needs public_url. Default: none.
	Registered string `json:"registered,omitempty"`
}

// FillDefaults sets what the configuration leaves out.
func (c *Config) FillDefaults() {
	conf.OrDefault(&c.Signatures, a2a.DropSignatures)
}

// Check checks the settings.
func (c *Config) Check() error {
	switch c.Signatures {
	case a2a.DropSignatures, a2a.KeepSignatures, a2a.RefuseSignatures:
	default:
		return fmt.Errorf("card: signatures is %q, but must be drop, keep or refuse", c.Signatures)
	}
	switch c.ACS {
	case "", acs.V0100, acs.V0201, acs.V0202:
	default:
		return fmt.Errorf("card: acs is %q, but must be %s, %s or %s", c.ACS, acs.V0100, acs.V0201, acs.V0202)
	}
	if c.RequestedValidity < 0 || c.RequestedValidity > acs.MaxValidity {
		return fmt.Errorf("card: requested_validity is %d, but must be 1 to %d days", c.RequestedValidity, acs.MaxValidity)
	}
	return nil
}

// Cards returns the settings of the Partner's cards.
func (c *Config) Cards() (gateway.Cards, error) {
	cards := gateway.Cards{
		Signatures: c.Signatures, ACS: c.ACS, Version: c.Version, Organization: c.Organization,
		OrganizationURL: c.OrganizationURL,
		Department:      c.Department, Country: c.Country, License: c.License, CAChallengeURL: c.CAChallengeURL,
		RequestedValidity: c.RequestedValidity,
	}
	if c.Registered == "" {
		return cards, nil
	}
	name, err := conf.FileName(caddy.NewReplacer(), c.Registered)
	if err != nil {
		return cards, fmt.Errorf("card: registered: %w", err)
	}
	cards.Registered = func(context.Context) ([]byte, error) { return acs.ReadFile(name) }
	return cards, nil
}
