// SPDX-License-Identifier: Apache-2.0

// Package keylock gives all users of a key one shared value, for example a mutex with its guarded fields.
package keylock

import (
	"hash/maphash"
	"sync"
)

// Map holds one value for each key in use. Its methods, and those of its entries, may be called by any number of
// goroutines at once.
type Map[V any] struct {
	create func(*Entry[V]) *V
	keep   func(*V) bool // nil if no idle values are kept
	idle   int           // values kept by a shard though they are not in use

	seed   maphash.Seed
	shards [shards]shard[V]
}

// shards is the number of mutexes for all keys.
const shards = 64

// shard has the entries of some keys. Those out of use are in a ring, the one used last first.
type shard[V any] struct {
	of      *Map[V]
	mu      sync.Mutex
	entries map[string]*Entry[V]
	idle    Entry[V] // holds the ring together; it has no value
	count   int      // of the others in the ring
}

// Entry is a key, and its value. Its users have it at hand: only Acquire looks for it.
type Entry[V any] struct {
	Key   string
	Value *V

	shard      *shard[V]
	users      int
	next, prev *Entry[V] // in the ring; nil while the entry is in use
}

// rest puts an entry out of use first into the ring. The caller holds s.mu.
func (s *shard[V]) rest(e *Entry[V]) {
	e.prev, e.next = &s.idle, s.idle.next
	e.prev.next, e.next.prev = e, e
	s.count++
}

// wake takes an entry out of the ring. The caller holds s.mu.
func (s *shard[V]) wake(e *Entry[V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	s.count--
}

// New returns a Map. It creates the value of a key when its use begins, and forgets it when its last use ends. create
// is called under a lock and must not call the Map. Its value may keep the entry; the entry has no Value yet.
func New[V any](create func(*Entry[V]) *V) *Map[V] {
	m := &Map[V]{create: create, seed: maphash.MakeSeed()}
	for i := range m.shards {
		s := &m.shards[i]
		s.of, s.entries = m, make(map[string]*Entry[V])
		s.idle.next, s.idle.prev = &s.idle, &s.idle
	}
	return m
}

// NewCached is New for values costly to create: about idle of them, those used last, are kept although they are not in
// use. keep is called when the last use of a value ends, and reports whether to keep it. Like create, it is called
// under a lock.
func NewCached[V any](idle int, create func(*Entry[V]) *V, keep func(*V) bool) *Map[V] {
	m := New(create)
	m.keep, m.idle = keep, max(idle/shards, 1)
	return m
}

func (m *Map[V]) shard(key string) *shard[V] {
	return &m.shards[maphash.String(m.seed, key)%shards]
}

// Acquire returns the entry of a key. It has the same value until each Acquire and Share is matched by a Release.
func (m *Map[V]) Acquire(key string) *Entry[V] {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	switch {
	case e == nil:
		e = &Entry[V]{Key: key, shard: s}
		e.Value = m.create(e)
		s.entries[key] = e
	case e.users == 0:
		s.wake(e)
	}
	e.users++
	return e
}

// Share begins another use of an entry in use by the caller.
func (e *Entry[V]) Share() {
	e.shard.mu.Lock()
	defer e.shard.mu.Unlock()
	e.users++
}

// Release ends one use of an entry. It reports whether it was the last one.
func (e *Entry[V]) Release() (last bool) {
	s := e.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.users--; e.users > 0 {
		return false
	}
	if s.of.keep == nil || !s.of.keep(e.Value) {
		delete(s.entries, e.Key)
		return true
	}
	s.rest(e)
	if s.count > s.of.idle {
		oldest := s.idle.prev
		s.wake(oldest)
		delete(s.entries, oldest.Key)
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
				used = append(used, e.Value)
			}
		}
		s.mu.Unlock()
	}
	return used
}
