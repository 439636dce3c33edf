// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"fmt"
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

// BenchmarkCheck looks whether notifications of logs followed elsewhere were lost, after an append to one of them.
func BenchmarkCheck(b *testing.B) {
	const logs = 5000
	a := streams(b, connect(b, servers.URL()), Config{Replicas: 3})
	owner := claim(b, a, 0, "a")
	defer owner.Close()
	elsewhere := openStreams(b, connect(b, servers.URL()), a.config)
	for i := range logs {
		first := replay.Append{Log: fmt.Sprint("log", i), Records: [][]byte{make([]byte, 300)}, Metadata: make([]byte, 300)}
		if err := owner.Append(b.Context(), first); err != nil {
			b.Fatal(err)
		}
		r := elsewhere.Logs(0).Read(first.Log, 0)
		defer r.Close()
		if _, _, err := r.Next(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
	}
	revision := uint64(1)
	for b.Loop() {
		next := replay.Append{Log: "log0", Expect: revision, Records: [][]byte{make([]byte, 300)}}
		if err := owner.Append(b.Context(), next); err != nil {
			b.Fatal(err)
		}
		revision++
		elsewhere.shards[0].check()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/logs/1e3, "µs/log")
}
