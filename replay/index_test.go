// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// nothing packs nothing.
var nothing = Packing[struct{}]{
	Append: func(b []byte, _ struct{}) []byte { return b },
	Parse:  func(*Numbers) (none struct{}) { return none },
}

// TestDueCost finds the due logs by few comparisons among many logs due later.
func TestDueCost(t *testing.T) {
	x := NewIndex(Settings{}, 1, nothing)
	now := time.Now()
	const n = 1 << 14
	for i := range n {
		at := now.Add(time.Duration(i*7919%n) * time.Second)
		x.Set(fmt.Sprintf("t%05d", i), struct{}{}, Head{DueAt: at}, 1, time.Time{})
	}
	compared := 0
	compare := x.due.compare
	x.due.compare = func(a, b place) int { compared++; return compare(a, b) }
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

// TestLargeLog: a log too large to be packed leaves no memory of its size behind.
func TestLargeLog(t *testing.T) {
	x := NewIndex(Settings{}, 1, nothing)
	const large = 1 << 20
	x.Set("large", struct{}{}, Head{Revision: 1, Metadata: make([]byte, large)}, 1, time.Time{})
	x.Set("other", struct{}{}, Head{Revision: 1}, 1, time.Time{})
	if l := x.logs.isAwake(0); l == nil || l.name != "large" || l.ready {
		t.Fatalf("the log is no large one that was to rest: %+v", l)
	}
	for name, b := range map[string][]byte{"a log": x.logs.buffer, "a head": x.logs.heads.buffer} {
		if cap(b) >= large {
			t.Errorf("the buffer of %s has %d bytes", name, cap(b))
		}
	}
}

// TestLateExpiry: an ended log kept for centuries is not dropped before, pinned or not, and makes room if it must.
func TestLateExpiry(t *testing.T) {
	const centuries = 290 * 365 * 24 * time.Hour
	x := NewIndex(Settings{Retention: centuries, PinFor: centuries, MaxSize: 5}, 1, nothing)
	now := time.Now()
	set := func(name string, h Head) { x.Set(name, struct{}{}, h, 2, time.Time{}) }
	set("pinned", Head{Ended: now})
	set("other", Head{Ended: now})
	set("pins", Head{Lists: []Listing{Pin("pinned", 0)}})
	if log, ok := x.Expired(now.AddDate(100, 0, 0)); ok {
		t.Errorf("after a century %q is dropped", log)
	}
	if log, ok := x.Surplus(0, "", now); ok {
		t.Errorf("%q is dropped, although there is room", log)
	}
	set("third", Head{Ended: now})
	x.Use("other")
	x.Use("pinned")
	for _, want := range []string{"third", "other", "pinned"} {
		x.Configure(Settings{Retention: centuries, PinFor: centuries, MaxSize: 1})
		if log, _ := x.Surplus(0, "", now); log != want {
			t.Fatalf("%q is dropped, want %q", log, want)
		}
		x.Remove(want)
	}
}
