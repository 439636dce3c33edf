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

// discoveryRoutes are the routes of discovery, and their commands.
var discoveryRoutes = []Route{
	{
		Path: CheckDiscovery, Method: "GET",
		Commands: []Command{{
			Name:  "discover check",
			Short: "Asks the discovery servers whether they know the Partners",
			Long: `
Asks each discovery server of the option discovery for each Partner with an AIC, as a
caller would, and says what is missing. STATE is found; not-alive (the monitor hears
nothing of it); hidden (the server takes it for unavailable); inactive (the registry has
disabled it); missing (the server does not know it); or not-asked, with the REASON. SEEN
is when the monitor has last heard of it. It uses Caddy's admin API.
`,
			Example: `  $ caddy aip discover check
  $ caddy aip discover check --json`,
		}},
	},
}
