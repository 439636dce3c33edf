// SPDX-License-Identifier: Apache-2.0

// Package clustertest has the drivers of a cluster in memory, with the faults of real ones: nodes cut off, a registry
// or streams without a leader, lost messages.
package clustertest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/replay"
)

// World is the environment shared by the nodes of a cluster.
type World struct {
	mu       sync.Mutex
	shards   []stream
	records  map[string]cluster.Record
	revision uint64
	made     int  // number of times the registry was made
	down     bool // nothing has a leader
	links    []*Link
	changed  chan struct{} // closed at the next change of the cuts
}

// stream is one shard. The mutex of World guards it, but the logs.
type stream struct {
	logs      *replay.Memory
	appending sync.RWMutex // read-locked by an append, so none is under way when the owner changes
	owner     cluster.Owner
	store     *store // opened by the owner; nil for none
}

// New returns a world with a number of shards without owners.
func New(shards int) *World {
	w := &World{shards: make([]stream, shards), records: make(map[string]cluster.Record),
		changed: make(chan struct{})}
	for i := range w.shards {
		w.shards[i].logs = replay.NewMemory(replay.Settings{})
	}
	return w
}

// Logs returns the logs of a shard.
func (w *World) Logs(shard int) *replay.Memory { return w.shards[shard].logs }

// Owner returns the owner's record of a shard.
func (w *World) Owner(shard int) cluster.Owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shards[shard].owner
}

// SetDown takes the leaders away from the registry and all streams, or gives them back. Messages still pass.
func (w *World) SetDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	w.change()
}

// Remake has the registry be lost, and made again: it is empty, and its revisions begin anew.
func (w *World) Remake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.records)
	w.revision = 0
	w.made++
}

// change wakes all waiting for a change. w.mu is held.
func (w *World) change() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Link is one process's way to the world. It implements the drivers of a cluster.
type Link struct {
	of           *World
	killed       bool
	cut          bool // it reaches nothing, and does not know
	disconnected bool // likewise, and knows
	watching     []func(cluster.Record)
	listening    map[string]*listener
	lose         func(cluster.Message) bool
	unanswered   bool // its writes to the registry are kept, and the answers are lost
	unwritten    bool // no write to the registry arrives
	spoken       atomic.Int64
	failing      int  // number of writes to the registry still to fail
	broken       bool // claims fail after they were written
	max          int
	delay        time.Duration   // of claims
	slow         time.Duration   // until writes to the registry arrive
	stale        []cluster.Owner // the owners it reads: from deposed leaders; nil for the present ones
	ready        []int           // the shards of StandBy
	unready      []int           // the shards claimed from others that were not ready
}

// Link returns a link for messages of up to 64 KiB.
func (w *World) Link() *Link {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &Link{of: w, listening: make(map[string]*listener), max: 64 << 10}
	w.links = append(w.links, l)
	return l
}

// set changes the link under the mutex of the world.
func (l *Link) set(change func()) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	change()
}

// SetMax sets the greatest number of bytes of data of a message.
func (l *Link) SetMax(n int) { l.set(func() { l.max = n }) }

// Cut has the link reach nothing, or everything again. Calls waiting for an answer meanwhile get it afterwards, as in a
// stopped process, or one with a silent network.
func (l *Link) Cut(cut bool) {
	l.set(func() {
		l.cut = cut
		l.of.change()
	})
}

// Disconnect is Cut with the knowledge of the process: sending is an error, and no process hears messages sent to it.
func (l *Link) Disconnect(cut bool) {
	l.set(func() {
		l.disconnected = cut
		l.of.change()
	})
}

// SetDelay has each claim take a time.
func (l *Link) SetDelay(d time.Duration) { l.set(func() { l.delay = d }) }

// SlowWrites has the writes of the process to the registry arrive after a time.
func (l *Link) SlowWrites(d time.Duration) { l.set(func() { l.slow = d }) }

// Lose has those messages of the process lost for which f is true; nil for none.
func (l *Link) Lose(f func(cluster.Message) bool) { l.set(func() { l.lose = f }) }

// LoseAnswers has the answers to the process's writes to the registry lost; the writes are kept.
func (l *Link) LoseAnswers(lose bool) { l.set(func() { l.unanswered = lose }) }

// LoseWrites has the process's writes to the registry lost: its heartbeats do not come, and all else does.
func (l *Link) LoseWrites(lose bool) { l.set(func() { l.unwritten = lose }) }

// FailWrites has so many of the next writes of the process to the registry fail at once.
func (l *Link) FailWrites(n int) { l.set(func() { l.failing = n }) }

// SetBroken has claims fail when they were written: the shard cannot be opened.
func (l *Link) SetBroken(broken bool) { l.set(func() { l.broken = broken }) }

// SetStale has the process read the owners of now from here on, as from deposed leaders, or the present ones.
func (l *Link) SetStale(stale bool) {
	l.set(func() {
		l.stale = nil
		for i := range l.of.shards {
			if stale {
				l.stale = append(l.stale, l.of.shards[i].owner)
			}
		}
	})
}

// Deaf has the process see no more writes of others to the registry, unless it asks.
func (l *Link) Deaf() { l.set(func() { l.watching = nil }) }

// Kill ends all listeners of the link, as the death of the process does.
func (l *Link) Kill() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.killed, l.cut, l.watching = true, true, nil
	l.of.change()
	for address, of := range l.listening {
		delete(l.listening, address)
		of.end()
	}
}

// pass waits until the link is whole, and, with leader, until there is a leader.
func (l *Link) pass(ctx context.Context, leader bool) error {
	for {
		l.of.mu.Lock()
		if l.killed {
			l.of.mu.Unlock()
			return replay.ErrClosed
		}
		ok, changed := !l.cut && !l.disconnected && !(leader && l.of.down), l.of.changed
		l.of.mu.Unlock()
		if ok {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), replay.ErrUnavailable)
		}
	}
}

// Count implements cluster.Streams.
func (l *Link) Count() int { return len(l.of.shards) }

// Logs implements cluster.Streams.
func (l *Link) Logs(shard int) replay.Logs { return l.of.shards[shard].logs }

// Owner implements cluster.Streams.
func (l *Link) Owner(ctx context.Context, shard int) (cluster.Owner, error) {
	if err := l.pass(ctx, true); err != nil {
		return cluster.Owner{}, err
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if l.stale != nil {
		return l.stale[shard], nil
	}
	return l.of.shards[shard].owner, nil
}

// Speak implements cluster.Streams.
func (l *Link) Speak(protocol int) { l.spoken.Store(int64(protocol)) }

// Spoken returns the protocol that its node's stores write for.
func (l *Link) Spoken() int { return int(l.spoken.Load()) }

// Claim implements cluster.Streams.
func (l *Link) Claim(
	ctx context.Context, shard int, after cluster.Owner, node, incarnation string,
) (cluster.Store, error) {
	l.of.mu.Lock()
	delay := l.delay
	l.of.mu.Unlock()
	time.Sleep(delay)
	if err := l.pass(ctx, true); err != nil {
		return nil, err
	}
	s := &l.of.shards[shard]
	s.appending.Lock()
	defer s.appending.Unlock()
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if s.owner != after {
		return nil, cluster.ErrClaimed
	}
	if after.Epoch > 0 && !slices.Contains(l.ready, shard) {
		l.unready = append(l.unready, shard)
	}
	s.owner, s.store = cluster.Owner{Node: node, Incarnation: incarnation, Epoch: after.Epoch + 1}, nil
	if l.broken {
		return nil, replay.ErrUnavailable
	}
	s.store = &store{Store: s.logs, link: l, of: s, fenced: make(chan struct{})}
	return s.store, nil
}

// Release implements cluster.Streams.
func (l *Link) Release(ctx context.Context, shard int, after cluster.Owner) error {
	if err := l.pass(ctx, true); err != nil {
		return err
	}
	s := &l.of.shards[shard]
	s.appending.Lock()
	defer s.appending.Unlock()
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if s.owner != after {
		return cluster.ErrClaimed
	}
	s.owner, s.store = cluster.Owner{Epoch: after.Epoch + 1}, nil
	return nil
}

// StandBy implements cluster.Streams.
func (l *Link) StandBy(shards []int) { l.set(func() { l.ready = slices.Clone(shards) }) }

// Ready returns the shards the process keeps ready.
func (l *Link) Ready() (shards []int) {
	l.set(func() { shards = slices.Clone(l.ready) })
	return shards
}

// Unready returns the shards claimed by the process since the last call that were owned before, and not kept ready.
func (l *Link) Unready() (shards []int) {
	l.set(func() { shards, l.unready = l.unready, nil })
	return shards
}

// store is the store of a shard for one of its owners.
type store struct {
	replay.Store
	link   *Link
	of     *stream
	once   sync.Once
	fenced chan struct{}
}

// Append implements replay.Store.
func (s *store) Append(ctx context.Context, a replay.Append) error {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	return s.write(ctx, func() error { return s.Store.Append(ctx, a) })
}

// Confirm implements cluster.Store.
func (s *store) Confirm(ctx context.Context) error { return s.write(ctx, func() error { return nil }) }

// write calls f if the stream takes a write of the owner.
func (s *store) write(ctx context.Context, f func() error) error {
	if err := s.link.pass(ctx, true); err != nil {
		return err
	}
	s.of.appending.RLock()
	defer s.of.appending.RUnlock()
	if s.of.store != s {
		s.once.Do(func() { close(s.fenced) })
		return replay.ErrFenced
	}
	return f()
}

// giveUp is the time an append waits for a leader.
const giveUp = 10 * time.Second

// Reopened implements replay.Store.
func (s *store) Reopened() <-chan struct{} {
	s.link.of.mu.Lock()
	defer s.link.of.mu.Unlock()
	return s.link.of.changed
}

// Fenced implements cluster.Store.
func (s *store) Fenced() <-chan struct{} { return s.fenced }

// Release implements cluster.Store.
func (s *store) Release(ctx context.Context) error {
	if err := s.link.pass(ctx, true); err != nil {
		return err
	}
	s.of.appending.Lock()
	defer s.of.appending.Unlock()
	s.link.of.mu.Lock()
	defer s.link.of.mu.Unlock()
	if s.of.store != s {
		return replay.ErrFenced
	}
	s.of.owner, s.of.store = cluster.Owner{Epoch: s.of.owner.Epoch + 1}, nil
	return nil
}

// Close implements replay.Store. The logs stay.
func (s *store) Close() error { return nil }

// Write implements cluster.Registry.
func (l *Link) Write(ctx context.Context, name string, data []byte, expect uint64) (uint64, error) {
	l.of.mu.Lock()
	slow := l.slow
	l.of.mu.Unlock()
	time.Sleep(slow)
	if err := l.pass(ctx, true); err != nil {
		return 0, err
	}
	w := l.of
	w.mu.Lock()
	if l.failing > 0 {
		l.failing--
		w.mu.Unlock()
		return 0, replay.ErrUnavailable
	}
	if l.unwritten {
		w.mu.Unlock()
		<-ctx.Done()
		return 0, errors.Join(ctx.Err(), replay.ErrUnavailable)
	}
	if w.records[name].Revision != expect {
		w.mu.Unlock()
		return 0, cluster.ErrConflict
	}
	w.revision++
	r := cluster.Record{Name: name, Data: slices.Clone(data), Revision: w.revision}
	w.records[name] = r
	var watching []func(cluster.Record)
	for _, other := range w.links {
		if !other.cut && !other.disconnected {
			watching = append(watching, other.watching...)
		}
	}
	unanswered := l.unanswered
	w.mu.Unlock()
	for _, f := range watching {
		f(r)
	}
	if unanswered {
		<-ctx.Done()
		return 0, errors.Join(ctx.Err(), replay.ErrUnavailable)
	}
	return r.Revision, nil
}

// All implements cluster.Registry.
func (l *Link) All(ctx context.Context) ([]cluster.Record, error) {
	if err := l.pass(ctx, true); err != nil {
		return nil, err
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	all := make([]cluster.Record, 0, len(l.of.records))
	for _, r := range l.of.records {
		r.Registry = strconv.Itoa(l.of.made)
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b cluster.Record) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Watch implements cluster.Registry.
func (l *Link) Watch(f func(cluster.Record)) (func(), error) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.watching = append(l.watching, f)
	return func() {
		l.of.mu.Lock()
		defer l.of.mu.Unlock()
		l.watching = nil
	}, nil
}
