// SPDX-License-Identifier: Apache-2.0

// Package procs lets the Go runtime use more threads than the machine has processors, if it has few. A long piece of
// work, such as a message of megabytes, a compaction of the store or a collection, keeps a thread of the runtime from
// other goroutines for up to 10 ms. The system shares its processors among threads in finer slices, and first of all
// with the waiting ones.
package procs

import (
	"os"
	"runtime"
)

// few is the number of processors from which nothing is changed.
const few = 4

// Wanted returns the GOMAXPROCS for a process, given its present one and the number of processors. Nothing is changed
// if the environment sets it, or if it was set already, as Caddy does in a container restricted to less than its
// machine has: more threads would use up its share sooner, and then all of them would wait.
func Wanted(now, processors int, environment string) int {
	if environment != "" || now != processors || processors >= few {
		return now
	}
	return min(2*processors, few)
}

// Set sets the GOMAXPROCS of this process. It returns the new one, or 0 for no change.
func Set() int {
	now := runtime.GOMAXPROCS(0)
	n := Wanted(now, runtime.NumCPU(), os.Getenv("GOMAXPROCS"))
	if n == now {
		return 0
	}
	runtime.GOMAXPROCS(n)
	return n
}
