// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"sync"
	"time"
)

// workers calls functions in reused goroutines, because a new one must grow its stack again, and a turn needs a deep
// one. It has no bound of its own: every run belongs to a task, and tasks are bounded.
type workers struct {
	running sync.WaitGroup // functions under way
	serving sync.WaitGroup // goroutines
	idle    chan func()    // a worker without work waits here
	closing <-chan struct{}
}

// workerIdle is the time for which a worker without work waits for the next function before it ends.
const workerIdle = 10 * time.Second

func newWorkers(closing <-chan struct{}) *workers {
	return &workers{idle: make(chan func()), closing: closing}
}

// Go runs f. It must not be called once Wait waits.
func (w *workers) Go(f func()) {
	w.Add()
	w.Run(f)
}

// Add counts a function run by another goroutine, or about to be run by Run. Done must be called, or Run. Add must not
// be called once Wait waits.
func (w *workers) Add() { w.running.Add(1) }

// Done notes the return of a function counted by Add.
func (w *workers) Done() { w.running.Done() }

// Run runs a function counted by Add. It may be called while Wait waits.
func (w *workers) Run(f func()) {
	work := func() {
		defer w.running.Done()
		f()
	}
	select {
	case w.idle <- work:
	default:
		w.serving.Go(func() { w.serve(work) })
	}
}

func (w *workers) serve(work func()) {
	patience := time.NewTimer(workerIdle)
	defer patience.Stop()
	for {
		work()
		patience.Reset(workerIdle)
		select {
		case work = <-w.idle:
		case <-w.closing:
			return
		case <-patience.C:
			return
		}
	}
}

// Wait waits for all functions to return, and, once closing is closed, for the workers to end.
func (w *workers) Wait() {
	w.running.Wait()
	w.serving.Wait()
}
