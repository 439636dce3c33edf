// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestSemaphore holds that slots are neither lost nor made, in whatever order callers come and leave.
func TestSemaphore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &semaphore{max: 3}
		var all sync.WaitGroup
		var now, most, got atomic.Int64
		for i := range 200 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				bubble.Pass(time.Duration(random.IntN(50)) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(100))*time.Millisecond)
				defer cancel()
				if random.IntN(5) == 0 {
					if !s.try(1 + random.IntN(2)) {
						return
					}
				} else if !s.acquire(ctx) {
					return
				}
				got.Add(1)
				n := now.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				bubble.Pass(time.Duration(random.IntN(5)) * time.Millisecond)
				now.Add(-1)
				s.release()
			})
		}
		all.Wait()
		if most.Load() != 3 || s.used != 0 || len(s.waiting) != 0 || got.Load() < 3 {
			t.Errorf("at most %d at once, %d taken in the end, %d waiting, %d had one", most.Load(), s.used,
				len(s.waiting), got.Load())
		}
	})
}
