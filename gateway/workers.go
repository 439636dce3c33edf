// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"runtime"
	"sync"
)

// workers step the streams that were woken together: as many at a time as there are processors. Their goroutines end
// when no stream is left. A step does not wait, so that no stream delays another.
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
	for s := w.next(); s != nil; s = w.next() {
		s.tryStep()
	}
}

// next returns the next stream. If there is none, it returns nil, and the goroutine ends.
func (w *workers) next() *Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == len(w.queue) {
		w.queue, w.first = w.queue[:0], 0
		w.n--
		return nil
	}
	s := w.queue[w.first]
	w.queue[w.first] = nil
	w.first++
	return s
}
