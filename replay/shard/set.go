// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/replay"
)

// Set is the shards owned by this process, and what works on them. Its methods may be called by any number of
// goroutines at once.
type Set struct {
	slots []slot
	logs  []replay.Logs // by shard
	peers Peers         // nil for none
	log   *slog.Logger

	ctx  context.Context // of the goroutines waiting for shards
	stop context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	kinds []kind // in the order of their opening
}

// kind is an Each, whatever it has.
type kind interface {
	open(ctx context.Context, shard int, store replay.Store) error
	close(shard int) // the result of open
	hide(shard int)  // from all looking for it
}

// slot is one shard. Its mutex is taken before that of the set.
type slot struct {
	owned atomic.Bool

	mu    lockorder.Mutex[lockorder.Shard]
	store replay.Store // nil while this process does not own the shard
	open  []kind       // in the order of their opening
}

// One returns the set of a store that is not shared with other processes: it has one shard, owned by this process until
// Close.
func One(store replay.Store) *Set {
	s := newSet(1, nil)
	s.slots[0].store, s.logs[0] = store, store
	s.slots[0].owned.Store(true)
	return s
}

// Join returns the set of the shards gained by this process, until Close. It logs the gained shards.
func Join(shards replay.Shards, log *slog.Logger) *Set {
	s := newSet(shards.Count(), log)
	s.peers, _ = shards.(Peers) // not all share them
	for i := range s.slots {
		s.logs[i] = shards.Logs(i)
		s.work.Go(func() { s.keep(shards, i) })
	}
	return s
}

func newSet(n int, log *slog.Logger) *Set {
	s := &Set{slots: make([]slot, n), logs: make([]replay.Logs, n), log: log}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Count returns the number of shards in all processes.
func (s *Set) Count() int { return len(s.slots) }

// Logs returns the logs of a shard to read them. Another process may own the shard. They can be read until Close.
func (s *Set) Logs(shard int) replay.Logs { return s.logs[shard] }

// retryOpen is the time a shard is left to other processes after it could not be opened.
const retryOpen = time.Second

// keep opens a shard each time this process gains it, and closes it when it is lost, until the set is closed.
func (s *Set) keep(shards replay.Shards, i int) {
	for s.ctx.Err() == nil {
		store, lost, err := shards.Open(s.ctx, i)
		if err == nil {
			if err = s.gain(i, store); err == nil {
				select {
				case <-lost:
				case <-s.ctx.Done():
				}
			}
			err = errors.Join(err, s.lose(i, store))
		}
		if err == nil || s.ctx.Err() != nil {
			continue
		}
		s.log.Error("a shard cannot be opened or closed; trying again", "shard", i, "error", err)
		select {
		case <-time.After(retryOpen):
		case <-s.ctx.Done():
		}
	}
}

// gain opens what works on a shard.
func (s *Set) gain(i int, store replay.Store) error {
	slot := &s.slots[i]
	slot.mu.Lock()
	defer slot.mu.Unlock()
	slot.store = store
	slot.owned.Store(true)
	s.mu.Lock()
	kinds := slices.Clone(s.kinds)
	s.mu.Unlock()
	for _, k := range kinds {
		if err := slot.add(s.ctx, i, k); err != nil {
			return err
		}
	}
	s.log.Info("a shard was gained", "shard", i)
	return nil
}

// add opens one kind, if it is not open. slot.mu is held.
func (l *slot) add(ctx context.Context, i int, k kind) error {
	if slices.Contains(l.open, k) {
		return nil
	}
	if err := k.open(ctx, i, l.store); err != nil {
		return err
	}
	l.open = append(l.open, k)
	return nil
}

// lose closes what works on a shard, and its store.
func (s *Set) lose(i int, store replay.Store) error {
	slot := &s.slots[i]
	slot.mu.Lock()
	defer slot.mu.Unlock()
	slot.owned.Store(false)
	for _, k := range slot.open {
		k.hide(i)
	}
	for _, k := range slices.Backward(slot.open) {
		k.close(i)
	}
	slot.store, slot.open = nil, nil
	return store.Close()
}

// attach opens a kind in all shards owned now or later.
func (s *Set) attach(k kind) error {
	s.mu.Lock()
	s.kinds = append(s.kinds, k)
	s.mu.Unlock()
	for i := range s.slots {
		slot := &s.slots[i]
		slot.mu.Lock()
		var err error
		if slot.store != nil {
			err = slot.add(s.ctx, i, k)
		}
		slot.mu.Unlock()
		if err != nil {
			s.detach(k)
			return err
		}
	}
	return nil
}

// detach closes a kind in all shards.
func (s *Set) detach(k kind) {
	is := func(other kind) bool { return other == k }
	s.mu.Lock()
	s.kinds = slices.DeleteFunc(s.kinds, is)
	s.mu.Unlock()
	for i := range s.slots {
		slot := &s.slots[i]
		slot.mu.Lock()
		if slices.Contains(slot.open, k) {
			slot.open = slices.DeleteFunc(slot.open, is)
			k.close(i)
		}
		slot.mu.Unlock()
	}
}

// Close ends all work on the shards, as the end of the process does, and closes their stores. Other processes take them
// over.
func (s *Set) Close() (err error) {
	s.stop()
	s.work.Wait()
	for i := range s.slots { // the shard of One
		if store := s.slots[i].store; store != nil {
			err = errors.Join(err, s.lose(i, store))
		}
	}
	return err
}
