// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// discoveries are the Partners at the discovery servers.
var discoveries = &listing[adminapi.DiscoveredList, adminapi.Discovered]{
	path:    adminapi.CheckDiscovery,
	entries: func(l *adminapi.DiscoveredList) ([]adminapi.Discovered, string) { return l.Agents, "" },
	header:  "PARTNER\tSTATE\tSEEN\tSERVER\tREASON",
	row: func(d *adminapi.Discovered) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", clean(d.Partner), clean(d.State), utc(d.Seen), clean(d.Server),
			clean(cmp.Or(d.Reason, advised(adp.State(d.State)))))
	},
	none: "No Partner has an AIC.",
}

// advised returns the advice about a state.
func advised(state adp.State) string {
	switch state {
	case adp.NotAlive:
		return "its heartbeats do not reach the monitor: see the option amp, and its forwarder"
	case adp.Hidden:
		return "the server takes it for unavailable: its poller does not reach it, see public in aip_health"
	case adp.Inactive:
		return "the registry has disabled it"
	case adp.NotSynced:
		return "the server has not got it from the registry yet, or it is not registered there"
	}
	return "-"
}
