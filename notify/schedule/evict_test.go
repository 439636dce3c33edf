// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// At the limit, failing endpoints go and their breakers stay. Working endpoints, and those with work, stay.
func TestEviction(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most, each = 2048, 128
		s, now := New(Limits{Endpoints: most, EndpointsPerLeader: each}), time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		add := func(name string, l *leader) *endpoint { return s.endpoint(l, name, now) }
		one := s.leaderOf("one")
		works, waits, inUse := add("works", one), add("waits", one), add("inUse", one)
		works.deliveredAt = now
		waits.breaker.failures, waits.ready = 1, []Job{{}}
		inUse.breaker.failures, inUse.inFlight = 1, 1
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
		if len(one.endpoints) > each || s.dormant.Len() == 0 {
			t.Errorf("%d endpoints, and %d breakers", len(one.endpoints), s.dormant.Len())
		}
		for _, p := range []*endpoint{works, waits, inUse} {
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
		if got := s.breakerOf(s.leaderOf("other"), "dead7"); got != (breaker{}) {
			t.Errorf("another Leader's breaker is %+v", got)
		}
		for name, want := range dead { // one coming back continues from its place
			if one.endpoints[name] == nil && want.until.IsZero() {
				if p := add(name, one); p == nil || p.breaker != want {
					t.Errorf("it came back as %+v, want %+v", p, want)
				}
				break
			}
		}

		// If all have work, there is room for no other one; but there is for another Leader's.
		for _, p := range one.endpoints {
			p.ready = []Job{{}}
		}
		for i := 0; len(one.endpoints) < each; i++ {
			add(fmt.Sprint("busy", i), one).ready = []Job{{}}
		}
		if p := add("more", one); p != nil || !one.fullUntil.After(now) {
			t.Errorf("there is room for %+v", p)
		}
		two := s.leaderOf("other")
		if p := add("other", two); p == nil || s.leaders["other"] != two {
			t.Error("there is no room for another Leader")
		} else {
			p.deliveredAt = now
		}

		// Of all Leaders together, too, failing endpoints go first, and only of Leaders with more.
		for i := 2; s.endpoints < most; i++ {
			l := s.leaderOf(fmt.Sprint("l", i))
			for j := 0; j < each && s.endpoints < most; j++ {
				add(fmt.Sprint("e", j), l).deliveredAt = now
			}
		}
		if add("more", two) != nil {
			t.Error("an endpoint that works was evicted for another Leader")
		}
		two.fullUntil = time.Time{}
		s.leaders["l3"].endpoints["e0"].deliveredAt, s.leaders["l3"].endpoints["e0"].breaker.failures = time.Time{}, 2
		if add("more", two) == nil || s.endpoints > most || s.leaders["l3"].endpoints["e0"] != nil {
			t.Error("an endpoint that fails was not evicted")
		}

		// Breakers are bounded, and the old ones go first.
		for i := range uint64(maxDormant) {
			s.dormant.Add(dormantKey{1, i}, breaker{failures: 5})
		}
		s.dormant.Add(s.dormantKey("other", "last"), breaker{failures: 3})
		if got := s.breakerOf(two, "last"); s.dormant.Len() > maxDormant || got.failures != 3 {
			t.Errorf("%d breakers, the last one is %+v", s.dormant.Len(), got)
		}
		works.ready, waits.ready, inUse.inFlight = nil, nil, 0
	})
}
