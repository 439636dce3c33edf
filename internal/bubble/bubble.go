// Package bubble runs tests in bubbles of testing/synctest.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// procs counts the bubbles open at the same time, in parallel tests.
var procs struct {
	mu     sync.Mutex
	open   int
	before int // GOMAXPROCS before the first of them
}

// Test runs f in a bubble, as synctest.Test does. With the race detector it lets one goroutine run at a time: all
// goroutines of a bubble share one context of the detector for their timers. Go (1.26) does not guard this context, so
// two goroutines receiving from expired timers at once crash the process (a SIGSEGV below raceacquirectx). Races are
// found all the same: the detector orders accesses by synchronisation, not by time.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raceDetector {
		limit()
		defer restore()
	}
	synctest.Test(t, f)
}

func limit() {
	procs.mu.Lock()
	defer procs.mu.Unlock()
	if procs.open == 0 {
		procs.before = runtime.GOMAXPROCS(1)
	}
	procs.open++
}

func restore() {
	procs.mu.Lock()
	defer procs.mu.Unlock()
	if procs.open--; procs.open == 0 {
		runtime.GOMAXPROCS(procs.before)
	}
}

// Pass lets time pass on the clock of the bubble: f of Test, or a goroutine of it, calls it in place of time.Sleep.
func Pass(d time.Duration) { time.Sleep(d) }
