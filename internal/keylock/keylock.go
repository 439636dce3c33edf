// SPDX-License-Identifier: Apache-2.0

// Package keylock gives all users of a key one shared value, such as a mutex and what it guards.
package keylock

import (
	"hash/maphash"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Map holds one value for each key in use. Its methods may be called by any number of goroutines at once.
type Map[V any] struct {
	create func(key string) *V
	keep   func(*V) bool // nil where no idle values are kept

	seed   maphash.Seed
	shards [shards]shard[V]
}

// shards is the number of mutexes that the keys share.
const shards = 64

type shard[V any] struct {
	mu   sync.Mutex
	used map[string]entry[V]
	// recent holds values for their next use, some of which are in use now. It is nil where none are kept.
	recent *simplelru.LRU[string, *V]
}

type entry[V any] struct {
	value *V
	users int
}

// New returns a Map that creates the value of a key when its use begins, and forgets it when its last use ends. create
// is called under a lock and must not call the Map.
func New[V any](create func(key string) *V) *Map[V] {
	m := &Map[V]{create: create, seed: maphash.MakeSeed()}
	for i := range m.shards {
		m.shards[i].used = make(map[string]entry[V])
	}
	return m
}

// NewCached is New for values that are costly to create: about idle of them, those used last, are kept although they
// are not in use. keep is called when the last use of a value ends, and reports whether to keep it. Like create, it is
// called under a lock.
func NewCached[V any](idle int, create func(key string) *V, keep func(*V) bool) *Map[V] {
	m := New(create)
	m.keep = keep
	for i := range m.shards {
		m.shards[i].recent, _ = simplelru.NewLRU[string, *V](max(idle/shards, 1), nil) // fails for a size below 1 only
	}
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
	e := s.used[key]
	if e.users == 0 {
		if s.recent != nil {
			e.value, _ = s.recent.Get(key)
		}
		if e.value == nil {
			e.value = m.create(key)
		}
	}
	e.users++
	s.used[key] = e
	return e.value
}

// Release ends one use of a key. It reports whether that was the last one.
func (m *Map[V]) Release(key string) (last bool) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.used[key]
	if e.users--; e.users > 0 {
		s.used[key] = e
		return false
	}
	delete(s.used, key)
	if s.recent == nil {
		return true
	}
	if m.keep(e.value) {
		s.recent.Add(key, e.value)
	} else {
		s.recent.Remove(key)
	}
	return true
}

// Used returns the values in use.
func (m *Map[V]) Used() []*V {
	var used []*V
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for _, e := range s.used {
			used = append(used, e.value)
		}
		s.mu.Unlock()
	}
	return used
}
