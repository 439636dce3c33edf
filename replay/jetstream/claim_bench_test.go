// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
)

// BenchmarkClaim takes over a shard with many logs.
func BenchmarkClaim(b *testing.B) {
	const logs = 5000
	s := streams(b, connect(b, servers.URL()), Config{Replicas: 3})
	owner := claim(b, s, 0, "first")
	for i := range logs {
		for seq := range uint64(2) {
			a := replay.Append{Log: fmt.Sprint(i), Expect: seq, Records: [][]byte{make([]byte, 300)},
				Metadata: make([]byte, 300)}
			if err := owner.Append(b.Context(), a); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if err := owner.Close(); err != nil {
			b.Fatal(err)
		}
		owner = claim(b, s, 0, "next")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/logs, "µs/log")
	if err := owner.Close(); err != nil {
		b.Fatal(err)
	}
}
