package bubble

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestTimers receives from expired timers in many goroutines of a bubble. This crashes the race detector when two of
// them run at once.
func TestTimers(t *testing.T) {
	for range 200 {
		Test(t, func(*testing.T) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					for range 50 {
						timer := time.NewTimer(time.Millisecond)
						Pass(2 * time.Millisecond)
						<-timer.C
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestParallel: the processors are given back when the last of several bubbles ends.
func TestParallel(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Run("bubbles", func(t *testing.T) {
		for range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for range 20 {
					Test(t, func(*testing.T) { Pass(time.Second) })
				}
			})
		}
	})
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("GOMAXPROCS is %d, want %d", got, before)
	}
}
