// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"hash/maphash"
	"sync"
)

// taken are names in this process's turns: of tasks, none of which must be found for another turn or given to another
// task, or of sessions. The oldest are forgotten. Each start takes a name, so the names are hashes: the collector reads
// nothing without pointers. The zero value is ready for use. Its methods may be called by any number of goroutines at
// once.
type taken struct {
	mu      sync.Mutex
	holders map[uint64]holder // by name
	names   []uint64          // a ring, in the order in which turns took them
	oldest  int               // index in names; the next name replaces it
}

// holder is the holder of a name.
type holder struct {
	leader uint64
	given  bool // by the gateway, to one task
}

// maxTaken is the number of names kept.
const maxTaken = 1 << 16

// hashSeed is random and of this process alone, so no agent and no Leader can choose names that collide.
var hashSeed = maphash.MakeSeed()

// holderOf returns a Leader as the holder of a name.
func holderOf(leader string, given bool) holder {
	return holder{maphash.String(hashSeed, leader), given}
}

// claim takes a name, and reports whether no turn had it.
func (t *taken) claim(name string, by holder) bool {
	_, had := t.take(name, by)
	return !had
}

// take takes a free name, or returns its holder.
func (t *taken) take(name string, by holder) (of holder, had bool) {
	hash := maphash.String(hashSeed, name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if of, had = t.holders[hash]; had {
		return of, true
	}
	if t.holders == nil {
		t.holders = make(map[uint64]holder)
	}
	t.holders[hash] = by
	if len(t.names) < maxTaken {
		t.names = append(t.names, hash)
		return holder{}, false
	}
	delete(t.holders, t.names[t.oldest])
	t.names[t.oldest] = hash
	t.oldest = (t.oldest + 1) % maxTaken
	return holder{}, false
}

// has reports whether a turn has a name.
func (t *taken) has(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, had := t.holders[maphash.String(hashSeed, name)]
	return had
}
