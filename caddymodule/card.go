// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"

	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// CardConfig is what the Partner's cards contain besides the content of the agent's card.
type CardConfig struct {
	// What happens to a card that the agent has signed: drop (the gateway serves its own card without a signature), keep
	// (the agent's card is served unchanged, with the agent's URLs) or refuse (no card is served). Default: drop.
	Signatures string `json:"signatures,omitempty"`

	// The version of the ACS at .well-known/acs.json: 01.00 or 02.01. Default: 01.00.
	ACS string `json:"acs,omitempty"`

	// The name of the provider of the Partner, in the ACS. Default: that of the provider in the agent's card.
	Organization string `json:"organization,omitempty"`

	// The URL of the provider, in the ACS. Default: that of the provider in the agent's card.
	OrganizationURL string `json:"organization_url,omitempty"`

	// The department of the provider, in the ACS. Default: none.
	Department string `json:"department,omitempty"`

	// The code of the provider's country, in the ACS. Default: CN.
	Country string `json:"country,omitempty"`

	// The licence of the provider, which ACS 01.00 requires. Default: none.
	License string `json:"license,omitempty"`

	// The URL at which the CA of ACS 01.00 finds the answers to its challenges. Default: none.
	CAChallengeURL string `json:"ca_challenge_url,omitempty"`
}

func (c *CardConfig) fillDefaults() {
	orDefault(&c.Signatures, a2a.DropSignatures)
	orDefault(&c.ACS, aip.ACS01)
}

func (c *CardConfig) check() error {
	switch c.Signatures {
	case a2a.DropSignatures, a2a.KeepSignatures, a2a.RefuseSignatures:
	default:
		return fmt.Errorf("card: signatures is %q, but must be drop, keep or refuse", c.Signatures)
	}
	if c.ACS != aip.ACS01 && c.ACS != aip.ACS02 {
		return fmt.Errorf("card: acs is %q, but must be %s or %s", c.ACS, aip.ACS01, aip.ACS02)
	}
	return nil
}
