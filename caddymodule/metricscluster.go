// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
)

// The metrics of the gateways that share a store, as one of them counts them.
var (
	metricClusterReady = newGauge("cluster_ready", "Whether the gateway takes part, and its lease holds: 1 or 0.")
	metricClusterNodes = newGauge("cluster_nodes", "Gateways that share the store and live, this one included.")
	metricShards       = newGauge("cluster_shards", "Shards of the store.")
	metricOwned        = newGauge("cluster_shards_owned", "Shards that the gateway owns.")
	metricClaims       = describe("cluster_claim_seconds",
		"Shards that the gateway has become the owner of, and how long each had to be read.")
	metricTakeOvers = describe("cluster_takeover_seconds",
		"Those of them whose owner was gone, and for how long nothing was heard of it.")
	metricFenced = newCounter("cluster_fenced_total",
		"Shards that were lost because another gateway had taken them over.")
	metricLapses    = newCounter("cluster_lease_lapses_total", "Times that the lease of the gateway had lapsed.")
	metricGone      = newCounter("cluster_nodes_gone_total", "Times that another gateway was declared gone.")
	metricForwarded = newGauge("cluster_calls", "Calls that others carry out for the gateway.")
	metricServing   = newGauge("cluster_calls_serving", "Calls that the gateway carries out for others.")
	metricHeld      = newGauge("cluster_calls_bytes", "Bytes of the requests and answers of these.")

	metricStreamAppends = describe("cluster_append_seconds",
		"Appends that the gateway has written, and how long each took until a quorum had it.")
	metricBatches = newCounter("cluster_batches_total", "Batches in which they were written.")
	metricResent  = newCounter("cluster_batches_resent_total",
		"Batches that were sent again: no answer, or a refusal.")
	metricConflicts    = newCounter("cluster_conflicts_total", "Appends that another writer was faster than.")
	metricFencedWrites = newCounter("cluster_fenced_appends_total",
		"Appends that were refused because another gateway had taken their shard over.")
	metricMissed = newCounter("cluster_missed_total",
		"Checks of a log of another gateway that have found records without a notification.")
	metricUnpurged = newCounter("cluster_unpurged_total",
		"Times that what was dropped was left in its stream: too much waits to be purged.")
)

// streams adds what the streams of shards have counted.
func (s samples) streams(c jetstream.Counts) {
	s.durations(metricStreamAppends, c.Appends)
	s.add(metricBatches, float64(c.Batches))
	s.add(metricResent, float64(c.Resent))
	s.add(metricConflicts, float64(c.Conflicts))
	s.add(metricFencedWrites, float64(c.Fenced))
	s.add(metricMissed, float64(c.Missed))
	s.add(metricUnpurged, float64(c.Unpurged))
}

// cluster adds what a gateway has counted.
func (s samples) cluster(c *cluster.Cluster) {
	living := 0
	for _, n := range c.Nodes() {
		if n.Living {
			living++
		}
	}
	of := c.Stats()
	s.flag(metricClusterReady, c.Ready() == nil)
	s.add(metricClusterNodes, float64(living))
	s.add(metricShards, float64(c.Count()))
	s.add(metricOwned, float64(of.Owned))
	s.durations(metricClaims, of.ClaimTook)
	s.durations(metricTakeOvers, of.TakeOverTook)
	s.add(metricFenced, float64(of.Fenced))
	s.add(metricLapses, float64(of.Lapses))
	s.add(metricGone, float64(of.Gone))
	s.add(metricForwarded, float64(of.Calls))
	s.add(metricServing, float64(of.Serving))
	s.add(metricHeld, float64(of.Held))
}
