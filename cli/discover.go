// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

// discoveries are the Partners at the discovery servers.
var discoveries = &listing[adminapi.DiscoveredList, adminapi.Discovered]{
	path:    adminapi.CheckDiscovery,
	entries: func(l *adminapi.DiscoveredList) ([]adminapi.Discovered, string) { return l.Agents, "" },
	header:  "PARTNER\tSTATE\tSEEN\tSERVER\tREASON",
	row: func(d *adminapi.Discovered) string {
		seen := "-"
		if !d.Seen.IsZero() {
			seen = d.Seen.UTC().Format(time.RFC3339)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", clean(d.Partner), clean(d.State), seen, clean(d.Server),
			clean(cmp.Or(d.Reason, advised(d.State))))
	},
	none: "No Partner has an AIC.",
}

// advised says what to do about a state.
func advised(state string) string {
	switch state {
	case "not-alive":
		return "its heartbeats do not reach the monitor: see the option amp, and its forwarder"
	case "hidden":
		return "the server takes it for unavailable: its poller does not reach it, see aip_healthz"
	case "inactive":
		return "the registry has disabled it"
	case "missing":
		return "the server has not got it from the registry yet, or it is not registered there"
	}
	return "-"
}
