// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
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

// TestSlowBatch: a batch without an answer holds up others for a moment only, and its end does not count again.
func TestSlowBatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var u underway
		var ends []func()
		began := time.Now()
		for i := range 6 {
			end, err := u.begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
			if want := time.Duration(i/2) * longUnderway; time.Since(began) != want {
				t.Errorf("the batch %d began after %v, want %v", i, time.Since(began), want)
			}
		}
		for i, end := range ends {
			end()
			u.mu.Lock()
			if u.batches != min(2, len(ends)-1-i) {
				t.Errorf("%d batches are under way after the end of %d", u.batches, i+1)
			}
			u.mu.Unlock()
		}
	})
}

// TestBatchGivenUp: the batch of a shard that is closed while it waits takes the turn of none.
func TestBatchGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var u underway
		u.batches = leastUnderway
		ctx, giveUp := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := u.begin(ctx)
			failed <- err
		}()
		synctest.Wait()
		giveUp()
		if err := <-failed; !errors.Is(err, context.Canceled) || len(u.waiting) > 0 || u.batches != leastUnderway {
			t.Errorf("%v, %d batches, %d waiting", err, u.batches, len(u.waiting))
		}
	})
}

// TestTurnGivenUp: if the turn of a batch has come as it is given up, the next one has it.
func TestTurnGivenUp(t *testing.T) {
	var u underway
	u.batches = leastUnderway - 1
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	given := false
	for range 1000 { // select takes either
		end, err := u.begin(ctx)
		if err == nil {
			end()
		}
		given = given || err != nil
		if u.batches != leastUnderway-1 || len(u.waiting) > 0 {
			t.Fatalf("%v, %d batches, %d waiting", err, u.batches, len(u.waiting))
		}
	}
	if !given {
		t.Error("no turn was given up")
	}
}

// TestAppendsWaitForTheirTurn: each store of the process counts, and its batches wait for their turn.
func TestAppendsWaitForTheirTurn(t *testing.T) {
	s := streams(t, connect(t, servers.URL()), Config{Shards: 6})
	u := &s.underway
	await := func(shards, waiting int) {
		t.Helper()
		patiently(t, func(context.Context) error {
			u.mu.Lock()
			defer u.mu.Unlock()
			if u.shards != shards || len(u.waiting) != waiting {
				return fmt.Errorf("%d shards count and %d wait, want %d and %d", u.shards, len(u.waiting), shards, waiting)
			}
			return nil
		})
	}
	var stores []*Store
	for i := range 6 {
		stores = append(stores, claim(t, s, i, "a"))
	}
	await(6, 0)
	u.mu.Lock()
	u.batches += 3 // that are never late
	u.mu.Unlock()
	written := make(chan error)
	go func() { written <- stores[5].Append(t.Context(), replay.Append{Log: "a", Records: [][]byte{{1}}}) }()
	await(6, 1)
	for range 3 {
		u.end()
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
	for _, store := range stores[:4] {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	await(2, 0)
	for _, store := range stores[4:] {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}
