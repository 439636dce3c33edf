// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"runtime"
	"sync"
)

// workers step the streams woken together: as many at a time as there are processors. Their goroutines end when no
// stream is left. A step does not wait, so no stream delays another.
type workers struct {
	mu    sync.Mutex
	queue []*Stream // woken, in this order from first on
	first int
	n     int // goroutines
}

func (w *workers) add(s *Stream) {
	w.mu.Lock()
	if w.first > 0 && len(w.queue) == cap(w.queue) {
		n := copy(w.queue, w.queue[w.first:])
		clear(w.queue[n:])
		w.queue, w.first = w.queue[:n], 0
	}
	w.queue = append(w.queue, s)
	begins := w.n < runtime.GOMAXPROCS(0)
	if begins {
		w.n++
	}
	w.mu.Unlock()
	if begins {
		go w.work()
	}
}

func (w *workers) work() {
	var some [16]*Stream // so many at a time, for fewer uses of the mutex
	for n := w.take(some[:]); n > 0; n = w.take(some[:]) {
		for i, s := range some[:n] {
			some[i] = nil
			s.tryStep()
		}
	}
}

// take moves the next streams to some, and returns their number. If there are none, the goroutine ends.
func (w *workers) take(some []*Stream) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := copy(some, w.queue[w.first:])
	clear(w.queue[w.first : w.first+n])
	if w.first += n; w.first == len(w.queue) {
		w.queue, w.first = w.queue[:0], 0
	}
	if n == 0 {
		w.n--
	}
	return n
}
