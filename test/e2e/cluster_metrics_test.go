// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"testing"
)

// TestContribCluster: every panel of the dashboard about several gateways has data when one of them has died, and the
// alerts about them fire when the servers have no quorum, and a gateway dies meanwhile.
func TestContribCluster(t *testing.T) {
	t.Parallel()
	_, address := sampleAgent(t)
	c := newCluster(t, 2, gatewayTo(address), "")
	p := newPrometheus(t, c.gateways...)
	at, n := leaderOf(t, c.gateways[0].url()), 0
	eventually(t, "both gateways are scraped", func() bool { return len(p.query("aip_cluster_ready == 1")) == 2 })
	c.gateways[1].kill()
	left := readDashboard(t).expressions(true)
	eventually(t, "all panels have data", func() bool {
		n++
		_ = at.insists(startCall(fmt.Sprint("t", n), "hello"))
		maps.DeleteFunc(left, func(_, expr string) bool { return len(p.query(expr)) > 0 })
		return len(left) == 0
	})
	c.gateways[1].start(c.config(1, gatewayTo(address), ""))
	c.allOwned(2)
	eventually(t, "both gateways are scraped again", func() bool { return len(p.query("aip_cluster_ready == 1")) == 2 })

	for _, server := range c.servers.Servers[1:] {
		server.Kill()
	}
	p.waitForAlert("AIPClusterCutOff")
	c.gateways[1].kill()
	p.waitForAlert("AIPClusterShardsWithoutOwner")
}
