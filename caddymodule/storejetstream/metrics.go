// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
)

var metrics metric.Set

// The metrics of the gateways that share a store, as one of them counts them.
var (
	metricClusterReady = metrics.Gauge("cluster_ready", "Whether the gateway takes part, and its lease holds: 1 or 0.")
	metricClusterNodes = metrics.Gauge("cluster_nodes", "Gateways that share the store and live, this one included.")
	metricShards       = metrics.Gauge("cluster_shards", "Shards of the store.")
	metricOwned        = metrics.Gauge("cluster_shards_owned", "Shards that the gateway owns.")
	metricClaims       = metrics.Histogram("cluster_claim_seconds",
		"Shards that the gateway has become the owner of, and how long each had to be read.")
	metricTakeOvers = metrics.Histogram("cluster_takeover_seconds",
		"Those of them whose owner was gone, and for how long nothing was heard of it.")
	metricFenced = metrics.Counter("cluster_fenced_total",
		"Shards that were lost because another gateway had taken them over.")
	metricLapses    = metrics.Counter("cluster_lease_lapses_total", "Times that the lease of the gateway had lapsed.")
	metricGone      = metrics.Counter("cluster_nodes_gone_total", "Times that another gateway was declared gone.")
	metricForwarded = metrics.Gauge("cluster_calls", "Calls that others carry out for the gateway.")
	metricServing   = metrics.Gauge("cluster_calls_serving", "Calls that the gateway carries out for others.")
	metricHeld      = metrics.Gauge("cluster_calls_bytes", "Bytes of the requests and answers of these.")

	metricStandby = metrics.Gauge("cluster_standby_logs",
		"Logs of shards of other gateways that are kept ready for a take-over.")
	metricStreamAppends = metrics.Histogram("cluster_append_seconds",
		"Appends that the gateway has written, and how long each took until a quorum had it.")
	metricBatches = metrics.Counter("cluster_batches_total", "Batches in which they were written.")
	metricResent  = metrics.Counter("cluster_batches_resent_total",
		"Batches that were sent again: no answer, or a refusal.")
	metricConflicts    = metrics.Counter("cluster_conflicts_total", "Appends that another writer was faster than.")
	metricFencedWrites = metrics.Counter("cluster_fenced_appends_total",
		"Appends that were refused because another gateway had taken their shard over.")
	metricMissed = metrics.Counter("cluster_missed_total",
		"Checks of a log of another gateway that have found records without a notification.")
	metricUnpurged = metrics.Counter("cluster_unpurged_total",
		"Times that what was dropped was left in its stream: too much waits to be purged.")
)

// samples are the values that a member collects.
type samples struct{ metric.Samples }

// Describe implements store.Measured.
func (*Store) Describe(out chan<- *prometheus.Desc) { metrics.Describe(out) }

// streams adds what the streams of shards have counted.
func (s samples) streams(c jetstream.Counts) {
	s.Durations(metricStreamAppends, c.Appends)
	s.Add(metricBatches, float64(c.Batches))
	s.Add(metricResent, float64(c.Resent))
	s.Add(metricConflicts, float64(c.Conflicts))
	s.Add(metricFencedWrites, float64(c.Fenced))
	s.Add(metricMissed, float64(c.Missed))
	s.Add(metricUnpurged, float64(c.Unpurged))
	s.Add(metricStandby, float64(c.Standby))
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
	s.Flag(metricClusterReady, c.Ready() == nil)
	s.Add(metricClusterNodes, float64(living))
	s.Add(metricShards, float64(c.Count()))
	s.Add(metricOwned, float64(of.Owned))
	s.Durations(metricClaims, of.ClaimTook)
	s.Durations(metricTakeOvers, of.TakeOverTook)
	s.Add(metricFenced, float64(of.Fenced))
	s.Add(metricLapses, float64(of.Lapses))
	s.Add(metricGone, float64(of.Gone))
	s.Add(metricForwarded, float64(of.Calls))
	s.Add(metricServing, float64(of.Serving))
	s.Add(metricHeld, float64(of.Held))
}
