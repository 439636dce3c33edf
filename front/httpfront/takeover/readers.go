// SPDX-License-Identifier: Apache-2.0

package takeover

import "sync"

// maxReaders is the most connections of streams read at once.
const maxReaders = 64

// streams reads the connections of streams.
var streams readers

// readers read connections with arrived bytes. A caller may make a read wait, by records of TLS in need of an answer:
// this delays the reads of other streams, and nothing else.
type readers struct {
	mu      sync.Mutex
	waiting []func() // each of another connection
	running int      // goroutines; they end when nothing waits
}

// have has a connection read soon. It does not wait.
func (r *readers) have(read func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, read)
	if r.running < maxReaders {
		r.running++
		go r.run()
	}
}

func (r *readers) run() {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.waiting = nil
			r.running--
			r.mu.Unlock()
			return
		}
		read := r.waiting[0]
		r.waiting[0] = nil
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
		read()
	}
}
