// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/task"
)

// One Leader has webhooks at more dead hosts than there is room for in memory. Another Leader's webhooks are notified
// without delay, whether their receivers are known or new.
func TestDeadWebhooksOfAnotherLeader(t *testing.T) {
	for name, hang := range map[string]bool{"hang": true, "refuse": false} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				const most = 256
				w := &world{t: t, store: memory()}
				w.limits = schedule.Limits{Endpoints: most, EndpointsPerLeader: most / 16}
				w.init()
				defer w.e.Close()
				w.sink.set(func(n *notice) (time.Duration, int, error) {
					switch {
					case !strings.Contains(n.url, "dead"):
						return 0, 200, nil
					case hang:
						return time.Hour, 200, nil
					}
					return 0, 0, errReset
				})
				other := func(id string) *writer { return &writer{w: w, log: "tpartner\x00other\x00" + id} }
				known := other("known")
				w.hook(known.log, here+"known", At{})
				must(t, known.move(task.Accepted))
				synctest.Wait()
				for i := range most/maxHooks + 8 {
					d := w.task(fmt.Sprint("dead", i))
					for j := range maxHooks {
						w.hook(d.log, fmt.Sprintf("https://dead%d-%d.example.org/", i, j), At{})
					}
					must(t, d.move(task.Accepted))
					time.Sleep(30 * time.Millisecond)
				}
				for i := range 10 {
					must(t, known.move([]task.State{task.Working, task.AwaitingInput}[i%2]))
					synctest.Wait() // and no time passes
					if got := w.sink.history(t, here+"known"); len(got) != 2+i {
						t.Fatalf("%d of %d were delivered at once", len(got), 2+i)
					}
					fresh := other(fmt.Sprint("new", i))
					url := fmt.Sprintf("https://new%d.example.org/", i)
					w.hook(fresh.log, url, At{})
					must(t, fresh.move(task.Accepted))
					time.Sleep(2 * time.Second)
					if diff := cmp.Diff([]task.State{task.Accepted}, w.sink.history(t, url)); diff != "" {
						t.Fatalf("the new receiver %d got (-want +got):\n%s", i, diff)
					}
				}
				// The other Leader has eleven.
				if n := w.e.queue.Counts().Endpoints; n > most/16+11 {
					t.Errorf("%d endpoints are in memory", n)
				}
			})
		})
	}
}
