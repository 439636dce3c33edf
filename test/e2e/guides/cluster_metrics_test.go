// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"maps"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestContribCluster: every panel of the dashboard about several gateways has data when one of them has died, and the
// alerts about them fire when the servers have no quorum, and a gateway dies meanwhile.
func TestContribCluster(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	c := site.NewCluster(t, 2, site.GatewayTo(address), "")
	p := newPrometheus(t, c.Gateways...)
	at, n := site.LeaderOf(t, c.Gateways[0].URL()), 0
	site.Eventually(t, "both gateways are scraped", func() bool { return len(p.query("aip_cluster_ready == 1")) == 2 })
	c.Gateways[1].Kill()
	left := readDashboard(t).expressions(true)
	site.Eventually(t, "all panels have data", func() bool {
		n++
		_ = at.Insists(site.StartCall(fmt.Sprint("t", n), "hello"))
		maps.DeleteFunc(left, func(_, expr string) bool { return len(p.query(expr)) > 0 })
		return len(left) == 0
	})
	c.Gateways[1].Start(c.Config(1, site.GatewayTo(address), ""))
	c.AllOwned(2)
	site.Eventually(t, "both gateways are scraped again",
		func() bool { return len(p.query("aip_cluster_ready == 1")) == 2 })

	for _, server := range c.Servers.Servers[1:] {
		server.Kill()
	}
	p.waitForAlert("AIPClusterCutOff")
	c.Gateways[1].Kill()
	p.waitForAlert("AIPClusterShardsWithoutOwner")
}
