// SPDX-License-Identifier: Apache-2.0

package keylock

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

type counter struct {
	entry *Entry[counter]
	mu    sync.Mutex
	n     int
}

func create(e *Entry[counter]) *counter { return &counter{entry: e} }

// TestExclusion: the users of one key share one mutex, and nothing is left when they are done.
func TestExclusion(t *testing.T) {
	m := New(create)
	held := [3]*counter{}
	for k := range held {
		held[k] = m.Acquire(fmt.Sprint(k)).Value
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 3000 {
				key := fmt.Sprint(i % 3)
				e := m.Acquire(key)
				e.Share()
				e.Value.mu.Lock()
				e.Value.n++
				e.Value.mu.Unlock()
				for range 2 {
					if e.Release() {
						t.Error("the last use ended while the value was in use")
					}
				}
			}
		})
	}
	group.Wait()
	if used := m.Used(); len(used) != len(held) || !slices.Contains(used, held[0]) {
		t.Errorf("in use are %v, want %v", used, held)
	}
	for k, c := range held {
		if key := fmt.Sprint(k); c.entry.Key != key || c.entry.Value != c || c.n != 8000 {
			t.Errorf("the value of %q has the entry %+v and %d", key, c.entry, c.n)
		}
		if !c.entry.Release() {
			t.Error("the last use is not reported")
		}
		next := m.Acquire(c.entry.Key)
		if next.Value == c {
			t.Error("a value that is not in use was kept")
		}
		next.Release()
	}
	for i := range m.shards {
		if n := len(m.shards[i].entries); n > 0 {
			t.Errorf("%d values are left", n)
		}
	}
}

// TestCached: values are kept for their next use: the values accepted by keep, the most recently used ones.
func TestCached(t *testing.T) {
	m := NewCached(shards, create, func(c *counter) bool { return c.n > 0 })
	use := func(key string, n int) *counter {
		e := m.Acquire(key)
		defer e.Release()
		e.Value.n += n
		return e.Value
	}
	first := use("a", 0)
	if use("a", 1) == first {
		t.Error("a value was kept although keep refused it")
	}
	second := use("a", 0)
	if second.n != 1 {
		t.Error("a value was not kept although keep accepted it")
	}
	held := m.Acquire("a")
	sameShard := func(n int) (key string) {
		for i := 0; n > 0; i++ {
			if key = fmt.Sprint(i); m.shard(key) == m.shard("a") {
				n--
			}
		}
		return key
	}
	other := use(sameShard(1), 1) // "a" is in use, and so not the idle one of its shard
	if m.Acquire("a") != held {
		t.Error("a value in use was replaced")
	}
	held.Release()
	held.Release()
	if use("a", 0) != held.Value {
		t.Error("a value was not kept after its last use")
	}
	if use(other.entry.Key, 0) == other {
		t.Error("more values are kept than allowed")
	}
	third := use(sameShard(2), 1) // evicts "a"
	if use(third.entry.Key, 0) != third {
		t.Error("the value that was used last was not kept")
	}
	kept := use("a", 1)
	use("a", -1)
	if use("a", 0) == kept {
		t.Error("a value was kept after keep had refused it")
	}
}
