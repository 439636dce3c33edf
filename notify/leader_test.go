// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// One Leader has webhooks at more dead hosts than there is room for in memory. Another Leader's webhooks are told
// without delay, whether their receivers are known or new.
func TestDeadWebhooksOfAnotherLeader(t *testing.T) {
	for name, hang := range map[string]bool{"hang": true, "refuse": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, memory())
				defer w.e.Close()
				const most = 1024
				w.e.sched.most, w.e.sched.mostOfOne = most, most/16
				w.sink.set(func(n *notice) (time.Duration, int, error) {
					switch {
					case !strings.Contains(n.url, "dead"):
						return 0, 200, nil
					case hang:
						return time.Hour, 200, nil
					}
					return 0, 0, errReset
				})
				other := func(id string) *life { return &life{w: w, log: "tpartner\x00other\x00" + id} }
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
						t.Fatalf("%d of %d were told at once", len(got), 2+i)
					}
					fresh := other(fmt.Sprint("new", i))
					url := fmt.Sprintf("https://new%d.example.org/", i)
					w.hook(fresh.log, url, At{})
					must(t, fresh.move(task.Accepted))
					time.Sleep(2 * time.Second)
					if diff := cmp.Diff([]task.State{task.Accepted}, w.sink.history(t, url)); diff != "" {
						t.Fatalf("the new receiver %d was told (-want +got):\n%s", i, diff)
					}
				}
				s := &w.e.sched
				s.mu.Lock()
				defer s.mu.Unlock()
				if n := len(s.leaders["leader"].endpoints); n > most/16 || s.known > most || len(s.asleep) > maxAsleep {
					t.Errorf("in memory there are %d endpoints of the first Leader, %d of all, and %d breakers", n, s.known, len(s.asleep))
				}
			})
		})
	}
}

// At the limit, endpoints that fail go and their breakers stay. Endpoints that work, or have work, stay.
func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		s, now, outbox := &w.e.sched, time.Now(), logname.OutboxOf(taskLog("a"))
		s.mu.Lock()
		defer s.mu.Unlock()
		const most, each = 2048, 128
		s.most, s.mostOfOne = most, each
		add := func(name string, l *leader) *endpoint { return s.endpoint(l, name, now) }
		one := s.leaderOf(outbox)
		works, waits, tried := add("works", one), add("waits", one), add("tried", one)
		works.okAt = now
		waits.breaker.failures, waits.ready = 1, []job{{}}
		tried.breaker.failures, tried.flying = 1, 1
		dead := map[string]breaker{}
		for i := range each {
			p := add(fmt.Sprint("dead", i), one)
			if p == nil {
				t.Fatalf("there is no room for endpoint %d", i)
			}
			for range 1 + i%8 {
				p.breaker.fail(now)
			}
			dead[p.name] = p.breaker
		}
		if len(one.endpoints) > each || len(s.asleep) == 0 {
			t.Errorf("%d endpoints, and %d breakers", len(one.endpoints), len(s.asleep))
		}
		for _, p := range []*endpoint{works, waits, tried} {
			if one.endpoints[p.name] != p {
				t.Errorf("the endpoint that %s is gone", p.name)
			}
		}
		for name, want := range dead {
			got := s.breakerOf(one, name)
			if got.failures != want.failures || got.trips != want.trips || got.open(now) != want.open(now) ||
				want.until.Sub(got.until).Abs() > time.Millisecond {
				t.Fatalf("the breaker of %s is %+v, want %+v", name, got, want)
			}
		}
		if got := s.breakerOf(s.leaderOf("npartner\x00other\x00a"), "dead7"); got != (breaker{}) {
			t.Errorf("another Leader's breaker is %+v", got)
		}
		for name, want := range dead { // one that comes back goes on where it was
			if one.endpoints[name] == nil && want.until.IsZero() {
				if p := add(name, one); p == nil || p.breaker != want {
					t.Errorf("it came back as %+v, want %+v", p, want)
				}
				break
			}
		}

		// Where all have work, there is room for no other one; but there is for another Leader's.
		for _, p := range one.endpoints {
			p.ready = []job{{}}
		}
		for i := 0; len(one.endpoints) < each; i++ {
			add(fmt.Sprint("busy", i), one).ready = []job{{}}
		}
		if p := add("more", one); p != nil || !one.crowded.After(now) {
			t.Errorf("there is room for %+v", p)
		}
		two := s.leaderOf("npartner\x00other\x00a")
		if p := add("other", two); p == nil || s.leaders["other"] != two {
			t.Error("there is no room for another Leader")
		} else {
			p.okAt = now
		}

		// In all, too, those that fail go first, and only of Leaders who have more.
		for i := 2; s.known < most; i++ {
			l := s.leaderOf(fmt.Sprintf("npartner\x00l%d\x00a", i))
			for j := 0; j < each && s.known < most; j++ {
				add(fmt.Sprint("e", j), l).okAt = now
			}
		}
		if add("more", two) != nil {
			t.Error("an endpoint that works was evicted for another Leader")
		}
		two.crowded = time.Time{}
		s.leaders["l3"].endpoints["e0"].okAt, s.leaders["l3"].endpoints["e0"].breaker.failures = time.Time{}, 2
		if add("more", two) == nil || s.known > most || s.leaders["l3"].endpoints["e0"] != nil {
			t.Error("an endpoint that fails was not evicted")
		}

		// Breakers are bounded, and the old ones go first.
		for i := range uint64(maxAsleep) {
			s.asleep[asleepKey{1, i}] = asleepBreaker{failures: 5}
		}
		p := &endpoint{of: two, name: "last", used: now, breaker: breaker{failures: 3}}
		s.sleep(p, now)
		if got := s.breakerOf(two, "last"); len(s.asleep) > maxAsleep || got.failures != 3 {
			t.Errorf("%d breakers, the last one is %+v", len(s.asleep), got)
		}
		works.ready, waits.ready, tried.flying = nil, nil, 0
	})
}
