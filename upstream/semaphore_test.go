// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestSemaphore: slots are neither lost nor made, no key has more than it may, and none waits without need, for all
// orders of coming and leaving callers.
func TestSemaphore(t *testing.T) {
	for _, perKey := range []int{0, 2} {
		bubble.Test(t, func(t *testing.T) {
			s := &semaphore{max: 3, perKey: perKey}
			var all sync.WaitGroup
			var now, most, got, mostOfKey atomic.Int64
			var ofKey [4]atomic.Int64
			note := func(most *atomic.Int64, n int64) {
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
			}
			for i := range 400 {
				all.Go(func() {
					random := rand.New(rand.NewPCG(1, uint64(i)))
					n := random.IntN(len(ofKey))
					key := fmt.Sprint(n)
					bubble.Pass(time.Duration(random.IntN(50)) * time.Millisecond)
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(100))*time.Millisecond)
					defer cancel()
					if random.IntN(5) == 0 {
						if !s.try(key, 1+random.IntN(2)) {
							return
						}
					} else if !s.acquire(ctx, key) {
						return
					}
					got.Add(1)
					note(&most, now.Add(1))
					note(&mostOfKey, ofKey[n].Add(1))
					bubble.Pass(time.Duration(random.IntN(5)) * time.Millisecond)
					now.Add(-1)
					ofKey[n].Add(-1)
					s.release(key)
				})
			}
			all.Wait()
			if most.Load() != 3 || got.Load() < 3 {
				t.Errorf("at most %d at once, %d had one", most.Load(), got.Load())
			}
			if perKey > 0 && mostOfKey.Load() != int64(perKey) {
				t.Errorf("a key had %d at once", mostOfKey.Load())
			}
			if s.used != 0 || s.waiting != 0 || len(s.by) != 0 || len(s.lines) != 0 || s.next.Len() != 0 {
				t.Errorf("in the end %d are taken, by %v, %d wait in %d lines, and %d keys have their turn", s.used, s.by,
					s.waiting, len(s.lines), s.next.Len())
			}
		})
	}
}

// TestSemaphoreTakesTurns: the order of slots for the requests of several keys.
func TestSemaphoreTakesTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		perKey int
		held   string // the holders of the slots; they are released in this order
		wait   string // the waiting ones, in the order of coming
		leave  string // those of them giving up
		want   string
	}{
		"one key":                    {0, "aa", "a1 a2 a3", "", "a1 a2 a3"},
		"a key with many":            {0, "aa", "a1 a2 a3 a4 b1 c1 b2", "", "a1 b1 c1 a2 b2 a3 a4"},
		"one leaves":                 {0, "aa", "a1 a2 b1 a3", "b1", "a1 a2 a3"},
		"the first leaves":           {0, "aa", "a1 b1 a2", "a1", "a2 b1"},
		"a bound":                    {1, "ab", "a1 a2 b1 c1", "", "c1 a1 b1 a2"},
		"a bound, and one leaves":    {1, "ab", "a1 a2 b1 c1", "c1", "a1 b1 a2"},
		"nobody else waits":          {1, "a", "a1 a2", "", "a1 a2"},
		"a key that waits for none":  {1, "a", "b1 a1", "", "b1 a1"},
		"a key that has all it may":  {1, "ac", "a1 a2 b1", "", "b1 a1 a2"},
		"a bound that is never felt": {2, "ab", "a1 b1 a2", "", "a1 b1 a2"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := &semaphore{max: 2, perKey: tc.perKey}
				var mu sync.Mutex
				var got, held []string
				for key := range strings.SplitSeq(tc.held, "") {
					if !s.try(key, 1) {
						t.Fatalf("%s has no slot", key)
					}
					held = append(held, key)
				}
				var all sync.WaitGroup
				leave := make(map[string]context.CancelFunc)
				for _, who := range strings.Fields(tc.wait) {
					ctx, cancel := context.WithCancel(t.Context())
					leave[who] = cancel
					all.Go(func() {
						if s.acquire(ctx, who[:1]) {
							mu.Lock()
							defer mu.Unlock()
							got, held = append(got, who), append(held, who[:1])
						}
					})
					synctest.Wait()
				}
				if tc.leave != "" {
					leave[tc.leave]()
					synctest.Wait()
				}
				for {
					mu.Lock()
					if len(held) == 0 {
						mu.Unlock()
						break
					}
					key := held[0]
					held = held[1:]
					mu.Unlock()
					s.release(key)
					synctest.Wait()
				}
				for _, cancel := range leave {
					cancel()
				}
				all.Wait()
				if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
