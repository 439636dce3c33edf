// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"bytes"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Benchmark measures the main uses of a store. open returns an empty one; Benchmark closes it.
func Benchmark(b *testing.B, open func(b *testing.B, s replay.Settings) replay.Store) {
	record, note := bytes.Repeat([]byte(`{"text":"word"} `), 25), bytes.Repeat([]byte("note "), 20) // 400 and 100 bytes
	start := func(b *testing.B, sync replay.SyncMode) replay.Store {
		s := open(b, replay.Settings{Sync: sync, Capacity: 8 << 30})
		b.Cleanup(func() {
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
		b.ReportAllocs()
		return s
	}
	deadline := time.Now().Add(30 * time.Second)
	var n atomic.Int64
	// A task as a unary call makes it: known, then done.
	task := func(b *testing.B, s replay.Store, log string) {
		err := s.Append(b.Context(), replay.Append{Log: log, Metadata: note, DueAt: replay.Recover, Intent: true})
		if err == nil {
			err = s.Append(b.Context(), replay.Append{Log: log, Expect: 1, Records: [][]byte{record, record, record},
				Metadata: note, DueAt: deadline, Durable: true})
		}
		if err != nil {
			b.Error(err)
		}
	}
	name := func() string {
		return "agent.example.com/1.2.156.3088.0001.00001.TASKS.K1D2E3.1.0SOE/task-" + strconv.FormatInt(n.Add(1), 36)
	}
	for _, mode := range []struct {
		name string
		sync replay.SyncMode
	}{{"state", replay.SyncState}, {"always", replay.SyncAlways}, {"never", replay.SyncNever}} {
		b.Run("Task/"+mode.name, func(b *testing.B) {
			s := start(b, mode.sync)
			b.SetParallelism(16) // writers for each core
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					task(b, s, name())
				}
			})
		})
	}
	b.Run("Task/alone", func(b *testing.B) {
		s := start(b, replay.SyncNever)
		for b.Loop() {
			task(b, s, name())
		}
	})
	b.Run("New", func(b *testing.B) { // the look-up before a task begins
		s := start(b, replay.SyncNever)
		for b.Loop() {
			log := name()
			if _, _, _, err := s.Load(b.Context(), log); !errors.Is(err, replay.ErrNotFound) {
				b.Fatal(err)
			}
			if err := s.Append(b.Context(),
				replay.Append{Log: log, Metadata: note, DueAt: replay.Recover, Intent: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Missing", func(b *testing.B) { // a missing log, among others
		s := start(b, replay.SyncNever)
		for range 10_000 {
			task(b, s, name())
		}
		b.ResetTimer()
		for b.Loop() {
			if _, _, _, err := s.Load(b.Context(), name()); !errors.Is(err, replay.ErrNotFound) {
				b.Fatal(err)
			}
		}
	})
	b.Run("Chunks", func(b *testing.B) { // of a stream, each a record
		s := start(b, replay.SyncState)
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			log := name()
			for i := uint64(0); pb.Next(); i++ {
				if err := s.Append(b.Context(), replay.Append{Log: log, Expect: i, Records: [][]byte{record},
					Metadata: note}); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("Load", func(b *testing.B) {
		s := start(b, replay.SyncNever)
		logs := make([]string, 10_000)
		for i := range logs {
			logs[i] = name()
			task(b, s, logs[i])
			if err := s.Append(b.Context(), replay.Append{Log: logs[i], Expect: 2, Records: [][]byte{record}}); err != nil {
				b.Fatal(err)
			}
		}
		b.ResetTimer()
		for i := 0; b.Loop(); i++ {
			if _, _, r, err := s.Load(b.Context(), logs[i*7919%len(logs)]); err != nil || len(r) != 4 {
				b.Fatal(len(r), err)
			}
		}
	})
	b.Run("Follow", func(b *testing.B) {
		s := start(b, replay.SyncNever)
		const records = 10_000
		for i := range uint64(records / 100) {
			a := replay.Append{Log: "a", Expect: i, End: i == records/100-1}
			for range 100 {
				a.Records = append(a.Records, record)
			}
			if err := s.Append(b.Context(), a); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(records * int64(len(record)))
		for b.Loop() {
			got := 0
			for _, err := range replay.Follow(b.Context(), s, "a", 0, nil) {
				if err != nil {
					b.Fatal(err)
				}
				got++
			}
			if got != records {
				b.Fatal(got)
			}
		}
		b.ReportMetric(float64(records*b.N)/b.Elapsed().Seconds(), "records/s")
	})
}
