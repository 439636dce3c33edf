// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKey(t *testing.T) {
	for leader, want := range map[string]string{
		"1.2.156.3088.1": "1.2.156.3088.1", "anonymous": "anonymous", "": "",
		"unverified:a": Unverified, "unverified:b": Unverified, "unverified:anonymous": Unverified,
		"unverified": "unverified",
	} {
		if got := Key(leader); got != want {
			t.Errorf("Key(%q) = %q, want %q", leader, got, want)
		}
	}
}

func TestTake(t *testing.T) {
	const u = Unverified
	type take struct {
		leader string
		n      int64
		err    error
	}
	for name, c := range map[string]struct {
		limits Limits
		takes  []take
	}{
		"of one Leader": {Limits{100, 10}, []take{{"a", 10, nil}, {"a", 1, &ExceededError{true, 10}}, {"b", 10, nil}}},
		"of all Leaders": {Limits{15, 10}, []take{{"a", 10, nil}, {"b", 6, &ExceededError{false, 15}}, {"b", 5, nil},
			{"c", 1, &ExceededError{false, 15}}}},
		"unverified": {Limits{100, 10}, []take{{u + "a", 6, nil}, {u + "b", 5, &ExceededError{true, 10}},
			{u + "c", 4, nil}, {"a", 10, nil}}},
		"half unverified": {Limits{10, 10}, []take{{u + "a", 5, nil}, {u + "b", 1, &ExceededError{false, 5}}, {"a", 5, nil}}},
		"more than all":   {Limits{10, 20}, []take{{"a", 11, &ExceededError{false, 10}}, {"a", 10, nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			var counter Counter
			var total int64
			for i, take := range c.takes {
				err := counter.Take(take.leader, take.n, c.limits)
				if diff := cmp.Diff(take.err, err); diff != "" {
					t.Errorf("take %d: %s", i, diff)
				}
				if err == nil {
					total += take.n
				}
			}
			if got := counter.Total(); got != total {
				t.Errorf("%d are held, want %d", got, total)
			}
		})
	}
}

// TestNothingLeaks: for any order of takes and gives, the limits hold, and nothing is held in the end.
func TestNothingLeaks(t *testing.T) {
	limits := Limits{Total: 100, PerLeader: 40}
	leaders := []string{"a", "b", "c", Unverified + "x", Unverified + "y"}
	r := rand.New(rand.NewPCG(1, 2))
	var counter Counter
	type held struct {
		leader string
		n      int64
	}
	var all []held
	for range 10_000 {
		if len(all) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(all))
			counter.Give(all[i].leader, all[i].n)
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		} else if h := (held{leaders[r.IntN(len(leaders))], r.Int64N(20)}); counter.Take(h.leader, h.n, limits) == nil {
			all = append(all, h)
		}
		var total int64
		by := make(map[string]int64)
		for _, h := range all {
			total += h.n
			by[Key(h.leader)] += h.n
		}
		if total > limits.Total || total != counter.Total() {
			t.Fatalf("%d are held, and %d counted", total, counter.Total())
		}
		for key, n := range by {
			if n > limits.of(key) {
				t.Fatalf("%s holds %d", key, n)
			}
		}
	}
	for _, h := range all {
		counter.Give(h.leader, h.n)
	}
	counter.Give("a", 1) // more than is held
	if counter.total != 0 || len(counter.held) != 0 {
		t.Errorf("in the end %d are held, by %v", counter.total, counter.held)
	}
}

// TestLeases: for any order of holds, takes, waits and releases, the count is the sum of all holdings, and nothing is
// held in the end.
func TestLeases(t *testing.T) {
	const unit = 2 * Free
	limits := Limits{Total: 100 * unit, PerLeader: 40 * unit}
	leaders := []string{"a", "b", Unverified + "x", Unverified + "y"}
	r := rand.New(rand.NewPCG(3, 4))
	var counter Counter
	budget := Budget{Counter: &counter, Limits: limits}
	leases := make([]Lease, 40)
	for i := range leases {
		leases[i] = budget.Lease(leaders[i%len(leaders)])
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range 20_000 {
		i := r.IntN(len(leases))
		l, before := &leases[i], counter.Total()
		switch n := r.Int64N(60 * unit); r.IntN(5) {
		case 0:
			if l.Hold(n) != nil && (counter.Total() != before || n <= l.n) {
				t.Fatalf("to hold %d instead of %d was refused, and %d are held instead of %d", n, l.n, counter.Total(), before)
			}
		case 1:
			if l.Hold(n/50) == nil && n/50 > Free && l.n != n/50 {
				t.Fatalf("%d are held, want %d", l.n, n/50)
			}
		case 2:
			l.Take(n / 20)
		case 3:
			if had := l.n; l.Wait(ended, n/10) != nil && (l.n != had || counter.Total() != before) {
				t.Fatalf("a lease that left the line holds %d instead of %d", l.n, had)
			}
		case 4:
			l.Release()
		}
		var total int64
		for j := range leases {
			total += leases[j].n
		}
		if total != counter.Total() {
			t.Fatalf("%d are held, and %d counted", total, counter.Total())
		}
	}
	for i := range leases {
		leases[i].Release()
	}
	if counter.total != 0 || len(counter.held) != 0 || len(counter.lines) != 0 {
		t.Errorf("in the end %d are held, by %v, and %d Leaders wait", counter.total, counter.held, len(counter.lines))
	}
}

// TestLeaseBounds: one Leader leaves room for others, little is not counted, and more than the limit can be had as long
// as nothing else is held.
func TestLeaseBounds(t *testing.T) {
	var counter Counter
	budget := Budget{Counter: &counter, Limits: Limits{Total: 8 << 20, PerLeader: 4 << 20}}
	a, again, b := budget.Lease("a"), budget.Lease("a"), budget.Lease("b")
	var zero Lease
	for i, c := range []struct {
		lease *Lease
		n     int64
		err   error
		total int64
	}{
		{&a, Free, nil, 0},
		{&a, 64 << 20, nil, 4 << 20},
		{&again, Free, nil, 4 << 20},
		{&again, Free + 1, &ExceededError{true, 4 << 20}, 4 << 20},
		{&b, 4 << 20, nil, 8 << 20},
		{&a, 1 << 20, nil, 5 << 20},
		{&again, 3 << 20, nil, 8 << 20},
		{&a, 0, nil, 7 << 20},
		{&zero, 1 << 40, nil, 7 << 20},
	} {
		if diff := cmp.Diff(c.err, c.lease.Hold(c.n)); diff != "" || counter.Total() != c.total {
			t.Errorf("step %d: %d are held, want %d %s", i, counter.Total(), c.total, diff)
		}
	}
}
