// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestUnderway: half of the shards have a batch under way, and two at least; the others begin in their order.
func TestUnderway(t *testing.T) {
	for _, test := range []struct{ shards, most int }{{0, 2}, {1, 2}, {5, 2}, {6, 3}, {16, 8}} {
		bubble.Test(t, func(t *testing.T) {
			var u underway
			u.add(test.shards)
			var begun []int
			ends := make([]func(), 20)
			for i := range ends {
				go func() {
					end, err := u.begin(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					begun, ends[i] = append(begun, i), end
				}()
				synctest.Wait()
			}
			for i := range ends {
				want := make([]int, min(i+test.most, len(ends)))
				for n := range want {
					want[n] = n
				}
				if d := cmp.Diff(want, begun); d != "" {
					t.Errorf("%d shards, %d batches at their end: begun (-want +got):\n%s", test.shards, i, d)
				}
				ends[i]()
				ends[i]() // another call changes nothing
				synctest.Wait()
			}
		})
	}
}

// TestUnderwayOfMoreShards: with more shards more batches begin, and with fewer shards fewer.
func TestUnderwayOfMoreShards(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var u underway
		begun := make(chan func(), 20)
		for range cap(begun) {
			go func() {
				if end, err := u.begin(t.Context()); err == nil {
					begun <- end
				}
			}()
		}
		var got []int
		for _, shards := range []int{0, 8, -4, -4} {
			u.add(shards)
			synctest.Wait()
			got = append(got, len(begun))
		}
		for range 3 {
			(<-begun)()
			synctest.Wait()
			got = append(got, len(begun))
		}
		if d := cmp.Diff([]int{2, 4, 4, 4, 3, 2, 2}, got); d != "" {
			t.Errorf("batches under way (-want +got):\n%s", d)
		}
		for range cap(begun) - 3 {
			(<-begun)()
			synctest.Wait()
		}
	})
}

// TestSlowBatch: a batch without an answer holds up others for a moment only, and its end admits none a second time.
func TestSlowBatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var u underway
		began := time.Now()
		for i := range 6 {
			end, err := u.begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			if want := time.Duration(i/2) * longUnderway; time.Since(began) != want {
				t.Errorf("the batch %d began after %v, want %v", i, time.Since(began), want)
			}
		}
	})
}

// TestBatchGivenUp: the batch of a shard that is closed while it waits takes the turn of none.
func TestBatchGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var u underway
		var ends []func()
		for range 2 {
			end, err := u.begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		for _, late := range []bool{false, true} { // late: its turn comes as it is given up
			ctx, giveUp := context.WithCancel(t.Context())
			go func() {
				if end, err := u.begin(ctx); err == nil {
					end()
				}
			}()
			synctest.Wait()
			giveUp()
			if late {
				ends[0]()
				ends = ends[1:]
			}
			synctest.Wait()
			if late == (u.batches == 2) || len(u.waiting) > 0 {
				t.Errorf("late %t: %d batches, %d waiting", late, u.batches, len(u.waiting))
			}
		}
		ends[0]()
		if u.batches != 0 {
			t.Errorf("%d batches are under way", u.batches)
		}
	})
}
