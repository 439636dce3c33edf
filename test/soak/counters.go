// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strconv"
	"strings"
)

// The counters of the gateway that say what a phase has waited for.
const (
	syncs       = "aip_store_sync_seconds_count"
	fastSyncs   = `aip_store_sync_seconds_bucket{le="0.05"}`
	syncSeconds = "aip_store_sync_seconds_sum"
	journal     = "aip_store_journal_bytes_total"
	collections = "go_gc_duration_seconds_count"
	pauses      = "go_gc_duration_seconds_sum"
	processor   = "process_cpu_seconds_total"
)

// counters returns the counters of the gateway whose admin API is at an address, by name and labels. It is empty where
// the gateway does not answer.
func counters(ctx context.Context, admin string) map[string]float64 {
	all := make(map[string]float64)
	text, err := get(ctx, admin, "/metrics")
	if err != nil {
		return all
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.LastIndexByte(line, ' '); i > 0 {
			if v, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
				all[line[:i]] = v
			}
		}
	}
	return all
}
