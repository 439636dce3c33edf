// SPDX-License-Identifier: Apache-2.0

package caddymodule

// The bounds of max_runs where it is not set.
const (
	leastRuns = 16
	mostRuns  = 16384
)

// runsByFiles returns the default of max_runs: the other three quarters of the files are for callers, webhooks and the
// store.
func runsByFiles() int { return min(max(maxFiles()/4, leastRuns), mostRuns) }
