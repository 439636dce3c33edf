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
