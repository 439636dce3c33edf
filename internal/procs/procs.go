// SPDX-License-Identifier: Apache-2.0

// Package procs lets the Go runtime use more threads than the machine has processors, where it has few. A long piece of
// work, such as a message of megabytes, a compaction of the store or a collection, keeps a thread of the runtime from
// other goroutines for up to 10 ms. The system shares its processors among threads in finer slices, and first of all
// with those that have waited.
package procs

import (
	"os"
	"runtime"
)

// few is with how many processors nothing is changed.
const few = 4

// Wanted returns the GOMAXPROCS for a process that now has one of its own, on so many processors. Nothing is changed
// where the environment sets it, or where it was set already, as Caddy does where a container may use less than its
// machine has: more threads would use up its share sooner, and then all of them would wait.
func Wanted(now, processors int, environment string) int {
	if environment != "" || now != processors || processors >= few {
		return now
	}
	return min(2*processors, few)
}

// Set sets the GOMAXPROCS of this process. It returns the new one, or 0 if that is the one from before.
func Set() int {
	now := runtime.GOMAXPROCS(0)
	n := Wanted(now, runtime.NumCPU(), os.Getenv("GOMAXPROCS"))
	if n == now {
		return 0
	}
	runtime.GOMAXPROCS(n)
	return n
}
