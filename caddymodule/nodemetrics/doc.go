// SPDX-License-Identifier: Apache-2.0

// Package nodemetrics has the metrics of a process, of its node, and of the node's Partners. The rooms below count by
// atomics of their own, and know no Prometheus. Each subject has a prometheus.Collector here:
//
//   - process: streams, memory, connections of AUN, pushes of agents, and records for a monitor
//   - agents: calls, turns and requests; Partners with one agent are measured together
//   - callers: what access tokens, policies and quotas have decided
//   - tasks, webhooks and groups: what the node has
//
// An Exporter sends them, with Caddy's, through OpenTelemetry.
//
// The process's metrics are always there, the others while the configuration keeps its node open. Counts outlive
// configurations, and so counters continue after a reload. The label agent is the name of the Partner for people.
package nodemetrics
