// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/aip-gateway/aip-gateway/replay"
)

// BenchmarkStarts begins logs by so many writers at a time, on streams with three replicas. Beside it, a bare client
// publishes the same messages in as many batches, one after the other: bare/op is its time for one start.
func BenchmarkStarts(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			s := open(b, Config{Replicas: 3})
			defer s.Close()
			record, metadata := make([]byte, 600), make([]byte, 300)
			var next atomic.Int64
			var wg sync.WaitGroup
			start := time.Now()
			for range writers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						err := s.Append(b.Context(), replay.Append{Log: fmt.Sprintf("task/partner/leader/%d", i),
							Records: [][]byte{record}, Metadata: metadata, DueAt: replay.Recover})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			took := time.Since(start)
			b.StopTimer()
			counts := s.of.Counts()
			size := (b.N + int(counts.Batches) - 1) / int(counts.Batches)

			bare := open(b, Config{Replicas: 3})
			defer bare.Close()
			start = time.Now()
			for i := 0; i < b.N; i += size {
				batch, err := jetstreamext.NewBatchPublisher(bare.of.js, jetstreamext.BatchFlowControl{})
				if err != nil {
					b.Fatal(err)
				}
				for k := i; k < min(i+size, b.N); k++ {
					log := fmt.Sprintf("task/partner/leader/%d", k)
					for _, m := range []*nats.Msg{
						{Subject: bare.st.recordSubject(log, 1), Data: append(record[:len(record):len(record)], 1, 2, 3)},
						{Subject: bare.st.headSubject(log), Data: append(metadata[:len(metadata):len(metadata)], record[:20]...)},
					} {
						if err := batch.AddMsg(m); err != nil {
							b.Fatal(err)
						}
					}
				}
				if _, err := batch.Commit(b.Context(), bare.st.batchSubject, []byte("0123456789012345678901")); err != nil {
					b.Fatal(err)
				}
			}
			alone := time.Since(start)
			b.ReportMetric(float64(b.N)/took.Seconds(), "starts/s")
			b.ReportMetric(float64(b.N)/alone.Seconds(), "bare/s")
			b.ReportMetric(alone.Seconds()/took.Seconds(), "ratio")
			b.ReportMetric(float64(size), "starts/batch")
		})
	}
}

// TestMemoryOfLogs: an owner needs little memory for a resting log.
func TestMemoryOfLogs(t *testing.T) {
	s := open(t, Config{Replicas: 1})
	defer s.Close()
	const some, n = 10_000, 40_000 // the first ones are beside what there is once
	used := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	record := make([]byte, 500)
	var next atomic.Int64
	fill := func(n int64) {
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() {
				for i := next.Add(1); i <= n; i = next.Add(1) {
					a := restingTask(int(i))
					a.Records = [][]byte{record}
					if err := s.Append(t.Context(), a); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		next.Store(n)
	}
	fill(some)
	before := used()
	fill(n)
	each := (used() - before) / (n - some)
	t.Logf("%d bytes for each log that rests, with %d bytes of metadata", each, len(restingTask(1).Metadata))
	if each > 300 {
		t.Errorf("a log that rests takes %d bytes", each)
	}
}

// restingTask returns the append of a task that rests: what it writes beside its records.
func restingTask(i int) replay.Append {
	id := func(kind int) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", kind, i))
		return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	}
	const partner = "1.2.156.3088.1.34C2.478BDF.3GF546.1.0SOE"
	leader := fmt.Sprintf("1.2.156.3088.0001.00001.LEADER.%06d.1.0SOE", i%97)
	zone := time.FixedZone("", 8*60*60)
	changed := time.Unix(1_800_000_000+int64(i), int64(i)*7919*7919%1e9).Truncate(time.Millisecond).In(zone)
	sum := sha256.Sum256([]byte(id(3)))
	session := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
	metadata := fmt.Appendf(nil, `{"terms":{"response":60000000000,"awaitingInput":86400000000000,"awaitingCompletion":`+
		`86400000000000,"maxProductsBytes":1048576},"ref":{"task":%q,"session":%q},"ownSession":true,`+
		`"state":"awaiting-completion","changed":%q,"session":%q,"accepted":true}`, id(1), id(2),
		changed.Format(time.RFC3339Nano), id(3))
	return replay.Append{Log: "t" + partner + "\x00" + leader + "\x00" + id(0), Metadata: metadata,
		DueAt: changed.Add(24 * time.Hour), Lists: []replay.Listing{
			{List: "i" + partner + "\x00" + id(0)},
			{List: "aawaiting-completion", At: changed},
			{List: "l" + partner + "\x00" + leader + "\x00awaiting-completion", At: changed},
			{List: "s" + partner + "\x00" + leader + "\x00session-" + session, At: changed, Label: "awaiting-completion"},
		}}
}
