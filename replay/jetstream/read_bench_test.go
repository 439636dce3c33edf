// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
)

// BenchmarkRead reads a long log from the stream.
func BenchmarkRead(b *testing.B) {
	const records = 5000
	s := streams(b, connect(b, servers.URL()), Config{Replicas: 3})
	owner := claim(b, s, 0, "a")
	defer owner.Close()
	for seq := range uint64(records) {
		a := replay.Append{Log: "long", Expect: seq, Records: [][]byte{make([]byte, 200)}}
		if err := owner.Append(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		_, _, all, err := s.Logs(0).Load(b.Context(), "long")
		if err != nil || len(all) != records {
			b.Fatalf("%d records, %v", len(all), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records/1e3, "µs/record")
}
