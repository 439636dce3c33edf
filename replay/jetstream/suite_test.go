// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
)

// TestJetStream runs the suite on streams with one replica, and with three.
func TestJetStream(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint("R", replicas), func(t *testing.T) {
			replaytest.Run(t, func(t *testing.T, s replay.Settings) replay.Store {
				return open(t, Config{Replicas: replicas, Settings: s})
			}, replaytest.Options{Parallel: true, Reopen: reopen})
		})
	}
}
