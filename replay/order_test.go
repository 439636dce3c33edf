// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestOrder holds an order to a sorted slice.
func TestOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	o := order[int]{compare: cmp.Compare[int]}
	var want []int
	for range 5000 {
		v := rnd.IntN(400)
		at, found := slices.BinarySearch(want, v)
		switch rnd.IntN(3) {
		case 0:
			if o.remove(v); found {
				want = slices.Delete(want, at, at+1)
			}
		default:
			if o.add(v); !found {
				want = slices.Insert(want, at, v)
			}
		}
		if o.size != len(want) {
			t.Fatalf("%d values, want %d", o.size, len(want))
		}
	}
	for _, v := range []int{-1, 0, 100, 399, 400} {
		at, _ := slices.BinarySearch(want, v)
		var got []int
		for n := range o.from(v) {
			got = append(got, n)
		}
		if d := gocmp.Diff(slices.Clone(want[at:]), got); d != "" && len(got)+len(want[at:]) > 0 {
			t.Errorf("from %d (-want +got):\n%s", v, d)
		}
	}
	var one []int
	for n := range o.from(0) {
		one = append(one, n)
		break
	}
	if d := gocmp.Diff(want[:1], one); d != "" {
		t.Errorf("the first one (-want +got):\n%s", d)
	}
}

// TestOrderCost finds a place by few comparisons among many values.
func TestOrderCost(t *testing.T) {
	compared := 0
	o := order[int]{compare: func(a, b int) int { compared++; return cmp.Compare(a, b) }}
	const n = 1 << 15
	for i := range n {
		o.add(i * 7919 % n)
	}
	compared = 0
	for i := range 100 {
		for range o.from(i * n / 100) {
			break
		}
	}
	if compared > 100*200 {
		t.Errorf("%d comparisons for 100 places among %d values", compared, n)
	}
}
