// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDueCost finds the due logs by few comparisons among many logs due later.
func TestDueCost(t *testing.T) {
	x := NewIndex[struct{}](Settings{}, 1)
	now := time.Now()
	const n = 1 << 14
	for i := range n {
		at := now.Add(time.Duration(i*7919%n) * time.Second)
		x.Set(&Indexed[struct{}]{Name: fmt.Sprintf("t%05d", i)}, Head{DueAt: at}, 1, time.Time{})
	}
	compared := 0
	compare := x.due.compare
	x.due.compare = func(a, b place[struct{}]) int { compared++; return compare(a, b) }
	lock := func(context.Context) error { return nil }
	for i := range 100 {
		from := now.Add(time.Duration(i*n/100) * time.Second)
		var got []time.Duration
		for due, err := range x.Due(t.Context(), lock, func() {}, 't', from, from.Add(2*time.Second)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, due.At.Sub(from.Round(0)))
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second, 2 * time.Second}, got); diff != "" {
			t.Fatalf("due after log %d (-want +got):\n%s", i, diff)
		}
	}
	if compared < 100 || compared > 100*200 { // without any, it goes through all
		t.Errorf("%d comparisons for 100 scans among %d logs", compared, n)
	}
}

// TestLateExpiry: an ended log kept for centuries is not dropped before, pinned or not, and makes room if it must.
func TestLateExpiry(t *testing.T) {
	const centuries = 290 * 365 * 24 * time.Hour
	x := NewIndex[struct{}](Settings{Retention: centuries, PinFor: centuries, MaxSize: 5}, 1)
	now := time.Now()
	set := func(name string, h Head) *Indexed[struct{}] {
		l := &Indexed[struct{}]{Name: name}
		x.Set(l, h, 2, time.Time{})
		return l
	}
	pinned, other := set("pinned", Head{Ended: now}), set("other", Head{Ended: now})
	set("pins", Head{Lists: []Listing{Pin("pinned", 0)}})
	if l := x.Expired(now.AddDate(100, 0, 0)); l != nil {
		t.Errorf("after a century %q is dropped", l.Name)
	}
	if l := x.Surplus(0, nil, now); l != nil {
		t.Errorf("%q is dropped, although there is room", l.Name)
	}
	set("third", Head{Ended: now})
	x.Touch(other)
	x.Touch(pinned)
	for _, want := range []string{"third", "other", "pinned"} {
		x.Configure(Settings{Retention: centuries, PinFor: centuries, MaxSize: 1})
		l := x.Surplus(0, nil, now)
		if l == nil || l.Name != want {
			t.Fatalf("%v is dropped, want %q", l, want)
		}
		x.Remove(l)
	}
}
