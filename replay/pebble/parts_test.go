// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal/segment"
)

// TestLargeBatch appends a batch of many parts. While each of them is synced, a small append of another log comes: it
// does not wait for the parts behind. A machine going down between two parts has all the small ones and nothing of the
// large one, and takes it then.
func TestLargeBatch(t *testing.T) {
	for name, test := range map[string]struct {
		durable bool
		fill    int // bytes of the segment used before
		small   int // bytes of each small append
	}{
		"durable": {durable: true}, "not durable": {},
		"the segment ends before the batch": {fill: 500_000, small: 7000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { testLargeBatch(t, test.durable, test.fill, test.small) })
		})
	}
}

// smalls is the number of small appends coming while the large one is synced.
const smalls = 24

func testLargeBatch(t *testing.T, durable bool, fill, size int) {
	system := vfs.NewCrashableMem()
	system.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 64 << 20, TotalBytes: 64 << 20})
	setBoot(t, system, "one")
	var (
		s       *Store
		during  bool
		small   sync.WaitGroup
		waited  [][]int // small appends already returned when each part was being synced
		done    []int
		crashed []*vfs.MemFS
		mu      sync.Mutex
	)
	one := func(n int) replay.Append {
		return replay.Append{Log: fmt.Sprint("small", n), Records: [][]byte{make([]byte, size)}, Durable: true}
	}
	begin := func(n int) {
		small.Go(func() {
			if err := s.Append(t.Context(), one(n)); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			done = append(done, n)
		})
	}
	s, err := open(watchedFS{system, ofLog(func(op string) error {
		mu.Lock()
		n := len(waited)
		if op != "sync" || !during {
			mu.Unlock()
			return nil
		}
		waited = append(waited, slices.Clone(done))
		crashed = append(crashed, crash(system, vfs.CrashCloneCfg{}))
		mu.Unlock()
		switch {
		case n == 0 && fill > 0:
			for i := range smalls {
				begin(i)
			}
		case n < smalls && fill == 0:
			begin(n)
		default:
			return nil
		}
		bubble.Pass(time.Millisecond) // all of them wait for the next round, or for the end of the segment
		return nil
	})}, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	appendRecords(t, s, "before", true, string(make([]byte, fill)))
	mu.Lock()
	during = true
	mu.Unlock()
	want := bytes.Repeat([]byte("large"), 40_000) // 200 KB, 25 parts
	large := replay.Append{Log: "large", Records: [][]byte{want}, Durable: durable}
	if err := s.Append(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	during = false
	mu.Unlock()
	small.Wait()
	if n := len(waited); fill == 0 && (n < 25 || len(waited[n-1]) < smalls-1) {
		t.Errorf("%d syncs; small appends that had returned at them: %v", n, waited)
	}
	whole := false
	after := crash(system, vfs.CrashCloneCfg{})
	for _, file := range filesWith(t, after, "/store", segment.Ext) {
		for _, batch := range batchesIn(t, after, file) {
			whole = whole || len(batch) > len(want)
		}
	}
	if whole != (fill > 0) {
		t.Errorf("the large batch is one record: %v", whole)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i, disk := range slices.Concat(crashed, []*vfs.MemFS{system}) {
		s, err := open(disk, "/store", replay.Settings{}, quiet)
		if err != nil {
			t.Fatalf("after part %d: %v", i, err)
		}
		_, _, records, err := s.Load(t.Context(), "large")
		switch {
		case err == nil && fill > 0: // it was synced as one record, before the sync of another one
			if !bytes.Equal(records[0].Data, want) {
				t.Fatalf("after sync %d: %d records", i, len(records))
			}
		case i < len(crashed) && !errors.Is(err, replay.ErrNotFound):
			t.Fatalf("after part %d: %d records, %v", i, len(records), err)
		case i == len(crashed) && (err != nil || !bytes.Equal(records[0].Data, want)):
			t.Fatalf("%d records, %v", len(records), err)
		case i < len(crashed):
			if err := s.Append(t.Context(), large); err != nil {
				t.Fatal(err)
			}
			if _, _, records, err = s.Load(t.Context(), "large"); err != nil || !bytes.Equal(records[0].Data, want) {
				t.Fatalf("after part %d: %d records, %v", i, len(records), err)
			}
			for _, n := range waited[i] {
				if _, _, _, err := s.Load(t.Context(), one(n).Log); err != nil {
					t.Fatalf("after part %d: %s: %v", i, one(n).Log, err)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkBesideLargeBatches appends something small while four others append 4 MiB each, all the time, with a journal
// writing these in parts, and with one writing each at once. It reports the time of the slowest hundredth of the small
// appends.
func BenchmarkBesideLargeBatches(b *testing.B) {
	for name, part := range map[string]int{"in parts": 0, "whole": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			s, err := Open(b.TempDir(), replay.Settings{}, quiet)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if part > 0 {
				s.sizes.Part, s.journal.Part = part, part
			}
			ctx, cancel := context.WithCancel(b.Context())
			var large sync.WaitGroup
			for i := range 4 {
				large.Go(func() {
					for n := 0; ctx.Err() == nil; n++ {
						a := replay.Append{Log: fmt.Sprintf("large%d-%d", i, n), Records: [][]byte{make([]byte, 4<<20)},
							Durable: true, End: true}
						if err := s.Append(b.Context(), a); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			var took []time.Duration
			for n := 0; b.Loop(); n++ {
				began := time.Now()
				a := replay.Append{Log: fmt.Sprint("small", n), Records: [][]byte{make([]byte, 300)}, Durable: true}
				if err := s.Append(b.Context(), a); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			cancel()
			large.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}
