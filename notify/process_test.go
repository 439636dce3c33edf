// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestEnginesOfAProcess: the engines of two shards share the slots and the breakers of their process. A closed one
// leaves its undelivered notifications to the next one over its store, and the other goes on.
func TestEnginesOfAProcess(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newProcess(nil, schedule.Limits{})
		a, b := newWorld(t, memory()), newWorld(t, memory())
		open := func(w *world) {
			var err error
			w.e, err = p.open(t.Context(), w.store, w.sink)
			must(t, err)
		}
		const slots = 4
		a.conf.Concurrency = slots
		for i, w := range []*world{a, b} {
			w.e.Close()
			w.sink = a.sink
			open(w)
			if i == 0 {
				p.Configure(a.conf) // counts for the engine opened later, too
			}
		}
		counts := func() Counts { return Engines{a.e, b.e}.Counts() }
		var answers atomic.Bool
		a.sink.set(func(n *notice) (time.Duration, int, error) {
			switch u, _ := url.Parse(n.url); {
			case strings.HasPrefix(u.Host, "fails"):
				return 0, 500, nil
			case !answers.Load():
				return time.Hour, 200, nil
			}
			return 0, 200, nil
		})
		urls := make(map[*world][]string)
		tasks := make(map[string]*writer)
		for _, w := range []*world{a, b} {
			for _, name := range []string{"1", "2", "3"} {
				l, to := w.task(name), "https://"+name+".example.org/"
				if w == b {
					l, to = w.task("b"+name), "https://b"+name+".example.org/"
				}
				w.hook(l.log, to, At{})
				must(t, l.move(task.Accepted))
				urls[w] = append(urls[w], to)
				tasks[to] = l
			}
			synctest.Wait()
			if n := counts().InFlight; n != slots/2 { // the other half is for known receivers
				t.Errorf("%d attempts are in flight", n)
			}
		}
		a.e.Close()
		answers.Store(true)
		time.Sleep(20 * time.Second) // hanging attempts are given up, and made again
		for _, to := range urls[b] {
			if diff := cmp.Diff([]task.State{task.Accepted}, b.sink.history(t, to)); diff != "" {
				t.Errorf("the engine that is open: %s (-want +got):\n%s", to, diff)
			}
		}
		for _, to := range urls[a] {
			if got := a.sink.history(t, to); len(got) > 0 {
				t.Errorf("the engine that was closed has delivered to %s", to)
			}
		}
		open(a)
		time.Sleep(time.Second)
		for _, to := range urls[a] {
			if diff := cmp.Diff([]task.State{task.Accepted}, a.sink.history(t, to)); diff != "" {
				t.Errorf("the next engine: %s (-want +got):\n%s", to, diff)
			}
		}
		if n := counts(); n.InFlight+n.Ready+n.Pending != 0 {
			t.Errorf("left: %+v", n)
		}

		// A receiver silent to one of them is not asked by the other, for the same Leader.
		bad := a.task("bad")
		a.hook(bad.log, "https://fails.example.org/", At{})
		must(t, bad.move(task.Accepted))
		for i := 0; i < 60 && counts().Open == 0; i++ {
			time.Sleep(time.Second)
		}
		before := len(a.sink.all())
		worse := b.task("worse")
		b.hook(worse.log, "https://fails.example.org/", At{})
		must(t, worse.move(task.Accepted))
		synctest.Wait()
		if n := len(a.sink.all()) - before; n != 0 {
			t.Errorf("%d attempts at a receiver that does not answer", n)
		}
		ends, err := Engines{a.e, b.e}.Endpoints(t.Context())
		must(t, err)
		for _, end := range ends {
			if end.URL == "https://fails.example.org:443" && (end.State != Paused || end.Queued != 2) {
				t.Errorf("%+v", end)
			}
		}
		a.e.Close()
		b.e.Close()
		if len(p.engines) != 0 || p.scheduler.Counts().Outboxes != 0 {
			t.Errorf("%d engines are open; in memory: %+v", len(p.engines), p.scheduler.Counts())
		}
	})
}
