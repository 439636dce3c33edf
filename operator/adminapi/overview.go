// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"time"

	"github.com/aip-gateway/aip-gateway/internal/measure"
)

// OverviewOf is the route of the overview.
const OverviewOf = "/aip/overview" // GET: Overview

// Overview is what the gateway has counted since it began, and what there is now. Of several gateways that share a
// store, it is what all of them have counted.
type Overview struct {
	Partial
	Activity

	Gateways []string `json:"gateways,omitempty"` // whose numbers these are; missing for one that is alone

	Since time.Time `json:"since"`         // when the first of the gateways began
	Dead  uint64    `json:"dead"`          // notifications that became dead letters
	Now   *Levels   `json:"now,omitempty"` // of all agents; missing, as Dead is, for a query that names one

	Agents []AgentOverview `json:"agents"`
}

// Activity is what was counted since the process began.
type Activity struct {
	Calls    uint64 `json:"calls"`        // that were answered
	Errors   uint64 `json:"errors"`       // those of them that were answered with an error
	Failures uint64 `json:"failed_tasks"` // tasks that have failed
	First    Took   `json:"first_event"`  // the time of turns until their first event
	Settled  Took   `json:"rest"`         // … until the agent has finished, failed or needs input
}

// Took is how long something took.
type Took struct {
	Count   uint64          `json:"count"`
	P50     float64         `json:"p50,omitempty"`     // seconds that half of them have not exceeded
	P99     float64         `json:"p99,omitempty"`     // that 99 of 100 have not exceeded
	Buckets *measure.Counts `json:"buckets,omitempty"` // of the histogram of the metric; missing if there are none
}

// Levels are how much there is now.
type Levels struct {
	Tasks   map[string]int64 `json:"tasks"`   // that have not ended, by state
	Pending int64            `json:"pending"` // notifications that are neither delivered nor dead
	Streams int64            `json:"streams"` // that are open
}

// AgentOverview is one agent of an Overview. Partners with one agent have the same numbers, those of the agent.
type AgentOverview struct {
	AgentHealth
	Activity

	Running int64 `json:"running"` // requests that are open at the agent now
	Queued  int64 `json:"queued"`  // turns that wait for a free one
}

// overviewRoutes is the route of the overview.
var overviewRoutes = []Route{
	{Path: OverviewOf, Method: "GET", Query: []string{"partner"}, Console: MayRead},
}
