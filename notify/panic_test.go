// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// faulty is a dialect panicking on some tasks.
type faulty struct {
	plain
	body, header func(id string) bool
}

func (f faulty) AppendNotification(dst []byte, t *task.Task) []byte {
	if f.body != nil && f.body(t.ID) {
		panic("a payload of the body")
	}
	return f.plain.AppendNotification(dst, t)
}

func (f faulty) NotificationHeader(w *task.Webhook) []translate.Field {
	if f.header != nil && f.header(w.ID) {
		panic("a payload of the header")
	}
	return f.plain.NotificationHeader(w)
}

// A panic in a delivery fails the attempt. It is made again as any other. It holds up nothing else, and says nothing of
// the endpoint.
func TestPanic(t *testing.T) {
	bad := func(string) bool { return true }
	for name, c := range map[string]struct {
		wire faulty
		send bool // the transport panics
	}{
		"body":   {wire: faulty{body: bad}},
		"header": {wire: faulty{header: bad}},
		"send":   {send: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, memory())
				defer w.e.Close()
				var broken atomic.Bool
				broken.Store(true)
				w.sink.set(func(n *notice) (time.Duration, int, error) {
					if c.send && broken.Load() && strings.HasSuffix(n.url, "bad") {
						w.sink.mu.Unlock() // RoundTrip does not come to it
						panic("a payload of the send")
					}
					return 0, 200, nil
				})
				w.conf.Dialects = func(w *task.Webhook, _ string) translate.Notifier {
					if broken.Load() && w.Dialect == "bad" {
						return c.wire
					}
					return plain{}
				}
				w.e.Configure(w.conf)
				l, other, begun := w.task("a"), w.task("b"), time.Now()
				_, err := w.e.Set(t.Context(), l.log, task.Webhook{URL: here + "bad", Dialect: "bad"}, At{})
				must(t, err)
				w.hook(other.log, here, At{})
				for _, l := range []*writer{l, other} {
					must(t, l.move(task.Accepted, task.Working))
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				got := w.deliveries(Filter{})
				if len(got) != 2 || got[0].Status != Failing || got[0].Attempts != 4 ||
					!strings.Contains(got[0].LastError, "the gateway failed") {
					t.Errorf("the deliveries are %+v", got)
				}
				ends, err := w.all().Endpoints(t.Context())
				must(t, err)
				rate := Rate{Attempts: 2, Delivered: 2, Since: begun} // of requests sent; a defect of ours does not count
				want := []Endpoint{{URL: "https://hooks.example.org:443", State: Sending, Queued: 2,
					URLs: []EndpointURL{{Path: "/…?…", Queued: 2, Rate: rate}}}}
				if diff := cmp.Diff(want, ends); diff != "" {
					t.Errorf("the endpoint (-want +got):\n%s", diff)
				}
				if s := w.log.String(); strings.Count(s, "this is a bug of the gateway") != 4 ||
					strings.Contains(s, "a payload") || !strings.Contains(s, "panic_test.go") {
					t.Errorf("the log says %s", s)
				}
				broken.Store(false)
				time.Sleep(time.Hour)
				synctest.Wait()
				for _, url := range []string{here, here + "bad"} {
					if diff := cmp.Diff([]task.State{task.Accepted, task.Working}, w.sink.history(t, url)); diff != "" {
						t.Errorf("%s got (-want +got):\n%s", url, diff)
					}
				}
			})
		})
	}
}
