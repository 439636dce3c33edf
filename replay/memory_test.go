// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
)

func TestMemory(t *testing.T) {
	replaytest.Run(t, func(t *testing.T, s replay.Settings) replay.Store { return replay.NewMemory(s) }, replaytest.Options{Bubble: true})
}

func BenchmarkMemory(b *testing.B) {
	replaytest.Benchmark(b, func(_ *testing.B, s replay.Settings) replay.Store { return replay.NewMemory(s) })
}
