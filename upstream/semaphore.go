// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"container/list"
	"context"
	"sync"
)

// semaphore counts slots. It hands them to the waiting keys in turn, and to the requests of one key in their order. So
// a key with many requests delays a request of another key by no more than one. Its zero value has no slots. Its
// methods may be called by any number of goroutines at once.
type semaphore struct {
	mu        sync.Mutex
	max, used int
	perKey    int            // the most slots of one key; 0 is no bound
	by        map[string]int // slots of each key; kept only for perKey
	waiting   int            // requests in all lines
	lines     map[string]*line
	next      list.List // of *line: those of keys that may have another slot, in turn
}

// line is the waiting requests of one key. It has one at least.
type line struct {
	key     string
	waiting list.List     // of chan struct{}, closed when its slot is given
	turn    *list.Element // in next; nil while the key has all its slots
}

// free reports whether a request of a key could have a slot now, without regard to waiting ones. s.mu is held.
func (s *semaphore) free(key string, part int) bool {
	return s.used < max(s.max/part, 1) && s.allows(key)
}

// allows reports whether a key has fewer slots than perKey. s.mu is held.
func (s *semaphore) allows(key string) bool { return s.perKey == 0 || s.by[key] < s.perKey }

// take counts a slot of a key. s.mu is held.
func (s *semaphore) take(key string) {
	s.used++
	if s.perKey == 0 {
		return
	}
	if s.by == nil {
		s.by = make(map[string]int)
	}
	s.by[key]++
}

// try takes a slot without waiting, unless one part of all slots, such as half of them for part 2, is taken already.
func (s *semaphore) try(key string, part int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next.Len() > 0 || !s.free(key, part) {
		return false
	}
	s.take(key)
	return true
}

// acquire waits for a slot. It reports false when ctx is done before.
func (s *semaphore) acquire(ctx context.Context, key string) bool {
	s.mu.Lock()
	if s.next.Len() == 0 && s.free(key, 1) {
		s.take(key)
		s.mu.Unlock()
		return true
	}
	given := make(chan struct{})
	l := s.lines[key]
	if l == nil {
		l = &line{key: key}
		if s.lines == nil {
			s.lines = make(map[string]*line)
		}
		s.lines[key] = l
		s.offer(l)
	}
	place := l.waiting.PushBack(given)
	s.waiting++
	s.mu.Unlock()
	select {
	case <-given:
		return true
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-given: // in the same moment
		s.put(key)
	default:
		s.leave(l, place)
	}
	return false
}

// offer gives a line its turn, if its key may have another slot. s.mu is held.
func (s *semaphore) offer(l *line) {
	if l.turn == nil && s.allows(l.key) {
		l.turn = s.next.PushBack(l)
	}
}

// leave removes a request from its line, and the line with its last request. s.mu is held.
func (s *semaphore) leave(l *line, place *list.Element) {
	l.waiting.Remove(place)
	s.waiting--
	if l.waiting.Len() > 0 {
		return
	}
	delete(s.lines, l.key)
	if l.turn != nil {
		s.next.Remove(l.turn)
		l.turn = nil
	}
}

func (s *semaphore) release(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key)
}

// put takes a slot back from a key, and hands out the free ones. s.mu is held.
func (s *semaphore) put(key string) {
	s.used--
	if s.perKey > 0 {
		if s.by[key]--; s.by[key] == 0 {
			delete(s.by, key)
		}
		if l := s.lines[key]; l != nil {
			s.offer(l)
		}
	}
	for s.used < s.max && s.next.Len() > 0 {
		l := s.next.Remove(s.next.Front()).(*line)
		l.turn = nil
		s.take(l.key)
		first := l.waiting.Front()
		close(first.Value.(chan struct{}))
		if s.leave(l, first); l.waiting.Len() > 0 {
			s.offer(l)
		}
	}
}

// queued returns the number of waiting requests of a key, and of all keys.
func (s *semaphore) queued(key string) (own, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[key]; l != nil {
		own = l.waiting.Len()
	}
	return own, s.waiting
}
