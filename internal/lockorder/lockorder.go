// SPDX-License-Identifier: Apache-2.0

// Package lockorder has the mutexes under which one room calls another, and the order of taking them. No goroutine asks
// for a lock while it holds one of the same or of a later level: two goroutines taking locks in different orders wait
// for each other for ever.
//
// The order is the order of the calls: the engines of a shard open and close under its slot, acceptors store under the
// lock of a task, also at other nodes, and every call to another node needs the lock of the cluster for a moment. A
// mutex under which its room calls only itself, or a room without calls back, needs no level, and is a sync.Mutex.
//
// Tests set Checked. Then a wrong order panics at once, also if no other goroutine waits.
package lockorder

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Checked has every Mutex check the order. Only tests set it, before a Mutex is used.
var Checked bool

// The levels, in the order of taking the locks.
type (
	Shard   struct{} // shard.Set's, of one shard: held while its engines open, and while they end their work
	Task    struct{} // partner's, of one task: held while its log is written, and while acceptors store
	Entry   struct{} // wsfront's, of one entry of the index of AUN: held while it is written
	Cluster struct{} // cluster's: no other room is called under it, but the log of the process
	Calls   struct{} // cluster's, of the calls among nodes: nothing is called under it
)

// Level is the place of a mutex in the order.
type Level interface{ level() level }

type level int

func (Shard) level() level   { return 1 }
func (Task) level() level    { return 2 }
func (Entry) level() level   { return 3 }
func (Cluster) level() level { return 4 }
func (Calls) level() level   { return 5 }

var names = [...]string{1: "shard", 2: "task", 3: "entry", 4: "cluster", 5: "calls"}

// Mutex is a sync.Mutex with a level.
type Mutex[L Level] struct {
	mu     sync.Mutex
	holder uint64 // the goroutine with the lock, if Checked
}

// Lock implements sync.Locker.
func (m *Mutex[L]) Lock() {
	if !Checked {
		m.mu.Lock()
		return
	}
	var l L
	me := goroutine()
	enter(me, l.level())
	m.mu.Lock()
	m.holder = me
}

// TryLock locks the mutex if no goroutine holds it, and reports whether it did.
func (m *Mutex[L]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	if Checked {
		var l L
		me := goroutine()
		enter(me, l.level())
		m.holder = me
	}
	return true
}

// Unlock implements sync.Locker.
func (m *Mutex[L]) Unlock() {
	if Checked {
		var l L
		leave(m.holder, l.level())
	}
	m.mu.Unlock()
}

// held has the levels held, or waited for, by each goroutine.
var held struct {
	sync.Mutex
	by map[uint64][]level
}

func enter(me uint64, l level) {
	held.Lock()
	defer held.Unlock()
	if i := slices.IndexFunc(held.by[me], func(had level) bool { return had >= l }); i >= 0 {
		panic(fmt.Sprintf("lockorder: the lock of a %s is asked for under that of a %s", names[l], names[held.by[me][i]]))
	}
	if held.by == nil {
		held.by = make(map[uint64][]level)
	}
	held.by[me] = append(held.by[me], l)
}

func leave(holder uint64, l level) {
	held.Lock()
	defer held.Unlock()
	had := held.by[holder]
	i := slices.Index(had, l)
	if i < 0 {
		panic(fmt.Sprintf("lockorder: the lock of a %s is released, and is not held", names[l]))
	}
	if had = slices.Delete(had, i, i+1); len(had) > 0 {
		held.by[holder] = had
	} else {
		delete(held.by, holder)
	}
}

// goroutine returns the number of this goroutine, from the first line of its stack: "goroutine 7 [running]:".
func goroutine() (n uint64) {
	var line [32]byte
	for _, c := range line[len("goroutine "):runtime.Stack(line[:], false)] {
		if c < '0' || c > '9' {
			break
		}
		n = 10*n + uint64(c-'0')
	}
	return n
}
