// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"
)

// When memory is given back.
const (
	releaseCheck   = 5 * time.Second // how often the streams are counted; their number must not have fallen meanwhile
	releaseStreams = 100             // so many must have ended, and half of the streams that were open
)

// ReleaseMemory calls release once after many streams have ended: what they needed is kept by the Go runtime for long
// otherwise. It does so until ctx ends.
func (p *Process) ReleaseMemory(ctx context.Context, release func()) {
	check := time.NewTicker(releaseCheck)
	defer check.Stop()
	var most, last int64 // streams that were open since memory was given back, and at the last check
	for {
		select {
		case <-check.C:
		case <-ctx.Done():
			return
		}
		open := p.Streams.Total()
		most = max(most, open)
		if ended := most - open; ended >= max(releaseStreams, most/2) && open >= last {
			release()
			most = open
		}
		last = open
	}
}
