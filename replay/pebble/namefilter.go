// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// nameFilter is a filter of the names of all logs in the database of a generation. Most looked-up logs do not exist
// yet. If the filter does not have a name, the database need not be asked.
//
// It is a blocked Bloom filter in layers, each greater than the one before, so a small store needs little memory. Names
// are only added. The filter is used once it has all names in the database at its beginning. A log committed later is
// added right after its commit, under log.write: before it can be looked up again.
type nameFilter struct {
	seed     maphash.Seed
	complete atomic.Bool     // the filter has all names
	full     chan<- struct{} // signals that the filter is full

	layers atomic.Pointer[[]nameLayer]
	left   atomic.Int64 // number of names the last layer still takes
	mu     sync.Mutex   // held while a layer is added
}

type nameLayer []nameBlock

// nameBlock has one bit of a name in each of its words. It fills a cache line.
type nameBlock [8]atomic.Uint64

const (
	firstLayer  = 2 << 10 // blocks of the first layer: 128 KiB
	layerGrowth = 8       // size of each layer, in times that of the one before
	nameLayers  = 3       // 9 MiB in all
	blockNames  = 48      // names for each block of a layer; about 1 look-up of 100 finds a name never added

	// mostLogs is the greatest number of logs of a store for a filter to be of use: half the capacity of a filter, so that
	// it can take as many new ones before it is replaced.
	mostLogs = firstLayer * (1 + layerGrowth + layerGrowth*layerGrowth) * blockNames / 2
)

// newNameFilter returns a filter without names.
func newNameFilter(full chan<- struct{}) *nameFilter {
	n := &nameFilter{seed: maphash.MakeSeed(), full: full}
	n.layers.Store(new([]nameLayer))
	return n
}

// nameBits returns the place of the bits of a hash: one of so many blocks, and in each byte the bit of a word.
func nameBits(hash uint64, blocks int) (block int, bits uint64) {
	return int((hash >> 32) * uint64(blocks) >> 32), hash * 0x9e3779b97f4a7c15
}

// add adds a name.
func (n *nameFilter) add(name string) {
	if n.left.Add(-1) < 0 {
		n.grow()
	}
	layers := *n.layers.Load()
	layer := layers[len(layers)-1]
	block, bits := nameBits(maphash.String(n.seed, name), len(layer))
	for i := range layer[block] {
		word, bit := &layer[block][i], uint64(1)<<(bits>>(8*i)&63)
		if word.Load()&bit == 0 {
			word.Or(bit)
		}
	}
}

// grow adds a layer, or signals that there is none left: then the last one takes more names than it should.
func (n *nameFilter) grow() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left.Load() >= 0 {
		return
	}
	layers := *n.layers.Load()
	if len(layers) == nameLayers {
		signal(n.full)
		return
	}
	blocks := firstLayer
	for range layers {
		blocks *= layerGrowth
	}
	layers = append(layers[:len(layers):len(layers)], make(nameLayer, blocks))
	n.layers.Store(&layers)
	n.left.Store(int64(blocks)*blockNames - 1)
}

// isFull returns whether the filter has as many names as it takes.
func (n *nameFilter) isFull() bool { return n.left.Load() < 0 && len(*n.layers.Load()) == nameLayers }

// mayHave returns false if the database has no log of a name.
func (n *nameFilter) mayHave(name string) bool {
	if n == nil || !n.complete.Load() {
		return true
	}
	hash := maphash.String(n.seed, name)
	for _, layer := range *n.layers.Load() {
		if layer.has(hash) {
			return true
		}
	}
	return false
}

func (l nameLayer) has(hash uint64) bool {
	block, bits := nameBits(hash, len(l))
	for i := range l[block] {
		if l[block][i].Load()&(1<<(bits>>(8*i)&63)) == 0 {
			return false
		}
	}
	return true
}

const (
	namesPage  = 1024                  // heads read at a time
	namesPause = 10 * time.Millisecond // between two pages: calls go first at the opening of a store with many logs
)

// makeFilters makes the filter of each generation, until the store is closed. A full one is replaced: most of its names
// are those of dropped logs.
func (s *Store) makeFilters() {
	defer close(s.filtersDone)
	for {
		reopened := s.Reopened()
		err := s.makeFilter(mostLogs)
		if errors.Is(err, replay.ErrClosed) {
			return
		}
		if err != nil && !errors.Is(err, replay.ErrUnavailable) {
			s.log.Error("replay: the names of logs cannot be read; new logs cost more", slog.Any("error", err))
		}
		select {
		case <-s.done:
			return
		case <-reopened:
		case <-s.filterFull:
		}
	}
}

// makeFilter makes the filter of the generation, unless it has one with room. A store with more logs than most is left
// without.
func (s *Store) makeFilter(most int) error {
	of, n, err := s.beginFilter()
	if err != nil || n == nil {
		return err
	}
	count := 0
	for lower, more := []byte{spaceHead}, true; more; {
		var added int
		if added, lower, more, err = s.fillFilter(of, n, lower); err != nil {
			return err
		}
		if count += added; count > most {
			of.logs.filter.Store(nil)
			return nil
		}
		if more {
			select {
			case <-s.done:
				return replay.ErrClosed
			case <-time.After(namesPause):
			}
		}
	}
	n.complete.Store(true)
	return nil
}

// beginFilter begins a filter, nil if the generation has one with room.
func (s *Store) beginFilter() (of *generation, n *nameFilter, err error) {
	if err := s.enter(context.Background()); err != nil {
		return nil, nil, err
	}
	defer s.exit(&err)
	if was := s.logs.filter.Load(); was != nil && was.complete.Load() && !was.isFull() {
		return s.generation, nil, nil
	}
	n = newNameFilter(s.filterFull)
	s.logs.filter.Store(n)
	return s.generation, n, nil
}

// fillFilter adds the names of some heads with keys from lower on. It returns their number, the beginning of the keys
// of the rest, and whether there is a rest.
func (s *Store) fillFilter(of *generation, n *nameFilter, lower []byte) (added int, rest []byte, more bool, err error) {
	if err := s.enter(context.Background()); err != nil {
		return 0, nil, false, err
	}
	defer s.exit(&err)
	if s.generation != of {
		return 0, nil, false, errReplaced
	}
	it, err := s.committed().NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: []byte{spaceHead + 1}})
	if err != nil {
		return 0, nil, false, err
	}
	for ok := it.First(); ok && !more; ok = it.Next() {
		n.add(string(it.Key()[1:]))
		if added++; added == namesPage {
			more, rest = true, append(bytes.Clone(it.Key()), 0) // the least greater key
		}
	}
	return added, rest, more, errors.Join(it.Error(), it.Close())
}
