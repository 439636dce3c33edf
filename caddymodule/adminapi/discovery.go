// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// CheckDiscovery is the route by which discovery servers are asked for the Partners.
const CheckDiscovery = "/aip/discovery/check" // GET: DiscoveredList

// NotAsked is the state of a Partner at a server that has not answered; the others are those of package adp.
const NotAsked = "not-asked"

// Discovered is what a discovery server knows of a Partner.
type Discovered struct {
	Server  string    `json:"server"`
	Partner string    `json:"partner"` // its AIC
	State   string    `json:"state"`   // found, not-alive, hidden, inactive, missing or not-asked
	Seen    time.Time `json:"seen,omitzero"`
	Reason  string    `json:"reason,omitempty"` // why it was not asked
}

// DiscoveredList has each Partner with an AIC, at each discovery server.
type DiscoveredList struct {
	Agents []Discovered `json:"agents"`
}
