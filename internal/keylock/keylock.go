// SPDX-License-Identifier: Apache-2.0

// Package keylock gives all users of a key one shared value, such as a mutex and what it guards.
package keylock

import (
	"hash/maphash"
	"sync"
)

// Map holds one value for each key in use. Its methods may be called by any number of goroutines at once.
type Map[V any] struct {
	create func(key string) *V
	keep   func(*V) bool // nil where no idle values are kept
	idle   int           // values that a shard keeps though they are not in use

	seed   maphash.Seed
	shards [shards]shard[V]
}

// shards is the number of mutexes that the keys share.
const shards = 64

// shard has the values of some keys. Values that are not in use are in a ring, the one used last first.
type shard[V any] struct {
	mu      sync.Mutex
	entries map[string]*entry[V]
	idle    entry[V] // holds the ring together; it has no value
	count   int      // of the others in the ring
}

type entry[V any] struct {
	key        string
	value      *V
	users      int
	next, prev *entry[V] // in the ring; nil while the value is in use
}

// rest puts an entry that is not in use first into the ring. The caller holds s.mu.
func (s *shard[V]) rest(e *entry[V]) {
	e.prev, e.next = &s.idle, s.idle.next
	e.prev.next, e.next.prev = e, e
	s.count++
}

// wake takes an entry out of the ring. The caller holds s.mu.
func (s *shard[V]) wake(e *entry[V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	s.count--
}

// New returns a Map that creates the value of a key when its use begins, and forgets it when its last use ends. create
// is called under a lock and must not call the Map.
func New[V any](create func(key string) *V) *Map[V] {
	m := &Map[V]{create: create, seed: maphash.MakeSeed()}
	for i := range m.shards {
		s := &m.shards[i]
		s.entries = make(map[string]*entry[V])
		s.idle.next, s.idle.prev = &s.idle, &s.idle
	}
	return m
}

// NewCached is New for values that are costly to create: about idle of them, those used last, are kept although they
// are not in use. keep is called when the last use of a value ends, and reports whether to keep it. Like create, it is
// called under a lock.
func NewCached[V any](idle int, create func(key string) *V, keep func(*V) bool) *Map[V] {
	m := New(create)
	m.keep, m.idle = keep, max(idle/shards, 1)
	return m
}

func (m *Map[V]) shard(key string) *shard[V] {
	return &m.shards[maphash.String(m.seed, key)%shards]
}

// Acquire returns the value of a key, which stays the same until each Acquire of the key is matched by a Release.
func (m *Map[V]) Acquire(key string) *V {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	switch {
	case e == nil:
		e = &entry[V]{key: key, value: m.create(key)}
		s.entries[key] = e
	case e.users == 0:
		s.wake(e)
	}
	e.users++
	return e.value
}

// Release ends one use of a key. It reports whether that was the last one.
func (m *Map[V]) Release(key string) (last bool) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e.users--; e.users > 0 {
		return false
	}
	if m.keep == nil || !m.keep(e.value) {
		delete(s.entries, key)
		return true
	}
	s.rest(e)
	if s.count > m.idle {
		oldest := s.idle.prev
		s.wake(oldest)
		delete(s.entries, oldest.key)
	}
	return true
}

// Used returns the values in use.
func (m *Map[V]) Used() []*V {
	var used []*V
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for _, e := range s.entries {
			if e.users > 0 {
				used = append(used, e.value)
			}
		}
		s.mu.Unlock()
	}
	return used
}
