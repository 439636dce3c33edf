// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
)

// BenchmarkDeliver measures one notification from the change to the answer of a receiver on the loopback interface,
// with many tasks at once, as far as they go through one endpoint.
func BenchmarkDeliver(b *testing.B) {
	for name, open := range map[string]func() (replay.Store, error){
		"memory": func() (replay.Store, error) { return memory(), nil },
		"pebble": func() (replay.Store, error) { return pebble.Open(b.TempDir(), replay.Settings{}, nil) },
	} {
		b.Run(name, func(b *testing.B) {
			var got atomic.Int64
			var want atomic.Int64
			done := make(chan struct{}, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if got.Add(1) == want.Load() {
					done <- struct{}{}
				}
			}))
			defer server.Close()
			store, err := open()
			must(b, err)
			defer store.Close()
			e, err := NewProcess(nil).Open(b.Context(), store)
			must(b, err)
			defer e.Close()
			key, err := sign.Parse(sign.GenerateHMAC())
			must(b, err)
			e.Configure(Config{
				Egress:   &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
				Dialects: dialects, Keys: sign.Keys{key},
			})
			const tasks = 64
			tk := task.Task{ID: "a", SessionID: "s", Status: task.Status{State: task.Working}}
			for i := range tasks {
				hook := task.Webhook{URL: server.URL, Dialect: "aip"}
				_, err := e.Set(b.Context(), taskLog(fmt.Sprint(i)), hook, At{})
				must(b, err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i, seq := 0, uint64(0); i < b.N; {
				n := min(tasks, b.N-i)
				got.Store(0)
				want.Store(int64(n))
				seq++
				for j := range n {
					e.Notify(b.Context(), taskLog(fmt.Sprint(j)), []Change{{Seq: seq, Task: &tk}})
				}
				<-done
				i += n
			}
		})
	}
}

// BenchmarkBody measures the cost of a notification's body: to keep it in the outbox, by one write for each change of
// state (keep), and to read it there for each attempt (read); or to make it for each attempt from the log of the task,
// after a number of events (log).
func BenchmarkBody(b *testing.B) {
	store, err := pebble.Open(b.TempDir(), replay.Settings{Sync: replay.SyncNever}, nil)
	must(b, err)
	defer store.Close()
	product := task.Product{ID: "p", DataItems: []task.DataItem{task.Text("a product of some words")}}
	begun := task.Task{ID: "a", SessionID: "s", Status: task.Status{State: task.Accepted}}
	settled := begun
	settled.Status.State, settled.Products = task.AwaitingCompletion, []task.Product{product}
	kept := 0
	b.Run("keep", func(b *testing.B) {
		e, err := NewProcess(nil).Open(b.Context(), store)
		must(b, err)
		e.Configure(Config{Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
		logs := make([]string, b.N)
		for i := range logs {
			kept++
			logs[i] = taskLog(fmt.Sprint("keep", kept))
			_, err := e.Set(b.Context(), logs[i], task.Webhook{URL: "http://127.0.0.1:9", Dialect: "aip"}, At{})
			must(b, err)
		}
		e.Close() // nothing is delivered any more, but changes are stored
		b.ReportAllocs()
		b.ResetTimer()
		for _, log := range logs {
			e.Notify(b.Context(), log, []Change{{Seq: 1, Task: &settled}})
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			data, err := replay.ReadOne(b.Context(), store, logname.OutboxOf(taskLog("keep1")), 2)
			must(b, err)
			_, t, err := decodeRecord(data)
			must(b, err)
			_ = plain{}.AppendNotification(nil, &t)
		}
	})
	for _, pieces := range []int{0, 20, 1000} {
		name := taskLog(fmt.Sprint("log", pieces))
		events := []task.Event{{Task: &begun}, {Status: &task.Status{State: task.Working}}}
		for i := range pieces {
			events = append(events, task.Event{Chunk: &task.Chunk{Product: product, Append: i > 0}})
		}
		events = append(events, task.Event{Status: &task.Status{State: task.AwaitingCompletion}})
		for i, ev := range events {
			must(b, store.Append(b.Context(), replay.Append{Log: name, Expect: uint64(i),
				Records: [][]byte{task.AppendEvent(nil, &ev)}}))
		}
		b.Run(fmt.Sprint("log/", len(events)), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				head, snapshot, records, err := store.Load(b.Context(), name)
				must(b, err)
				var fold task.Fold
				for s, err := range follow.Steps(follow.Position{}, head, snapshot, records) {
					must(b, err)
					fold.Apply(s.Event)
				}
				_ = plain{}.AppendNotification(nil, fold.Task())
			}
		})
	}
}
