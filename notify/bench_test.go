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

	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/replay"
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
			e, err := Open(b.Context(), store, nil)
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
