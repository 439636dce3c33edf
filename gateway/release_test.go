// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/quota"
)

// TestReleaseMemory ends streams and looks when memory is given back.
func TestReleaseMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var p Process
		var released []int64 // streams that were open then
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.ReleaseMemory(ctx, func() { released = append(released, p.Streams.Total()) })
		}()
		open := func(n int64) {
			t.Helper()
			if change := n - p.Streams.Total(); change < 0 {
				p.Streams.Give("leader", -change)
			} else if err := p.Streams.Take("leader", change, quota.Limits{Total: 1e6, PerLeader: 1e6}); err != nil {
				t.Fatal(err)
			}
			bubble.Pass(releaseCheck)
		}
		bubble.Pass(releaseCheck / 2) // each number of streams sees one check
		for _, n := range []int64{99, 0, 0, 1000, 600, 600, 400, 100, 100, 100, 0, 0, 99, 0, 0, 0} {
			open(n)
		}
		cancel()
		<-ended
		if diff := cmp.Diff([]int64{100, 0}, released); diff != "" {
			t.Errorf("memory was given back at (-want +got streams):\n%s", diff)
		}
	})
}
