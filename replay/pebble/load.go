// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

var errDamaged = errors.New("replay/pebble: records are missing from a log")

// Load implements replay.Store.
func (s *Store) Load(ctx context.Context, name string) (h replay.Head, snapshot []byte, records []replay.Record, err error) {
	if err := s.enter(ctx); err != nil {
		return h, nil, nil, err
	}
	defer s.exit()
	it, h, err := s.openLog(name)
	if err != nil {
		return h, nil, nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()

	ok := it.Next()
	if ok && it.Key()[partKeyLen(name)-1] == partSnapshot {
		snapshot = bytes.Clone(it.Value())
		ok = it.Next()
	}
	kept := h.Last + 1 - h.First
	if kept == 0 {
		return h, snapshot, nil, it.Error()
	}
	// What the head says of the sizes is a hint only, and bounded as such: a damaged one must not cost memory.
	data := make([]byte, 0, min(h.Bytes, 1<<20))
	records = make([]replay.Record, 0, min(kept, 1<<14))
	for ; ok; ok = it.Next() {
		seq, value := seqOf(it.Key()), it.Value()
		if seq != h.First+uint64(len(records)) {
			return h, nil, nil, errDamaged
		}
		if cap(data)-len(data) < len(value) {
			data = make([]byte, 0, max(len(value), cap(data)))
		}
		start := len(data)
		data = append(data, value...)
		records = append(records, replay.Record{Seq: seq, Data: data[start:len(data):len(data)]})
	}
	if err := it.Error(); err != nil {
		return h, nil, nil, err
	}
	if uint64(len(records)) != kept {
		return h, nil, nil, errDamaged
	}
	return h, snapshot, records, nil
}

// openLog returns the head of a log, and an iterator that stands on it and sees all of the log as it is
// committed now.
func (s *Store) openLog(name string) (*pebble.Iterator, replay.Head, error) {
	if name == "" || len(name) > replay.MaxName {
		return nil, replay.Head{}, replay.ErrNotFound
	}
	l := s.logs.use(name)
	defer s.logs.leave(l)
	l.write.Lock()
	defer l.write.Unlock()
	if l.known && l.head.First == 0 {
		return nil, replay.Head{}, replay.ErrNotFound
	}
	n := partKeyLen(name)
	bounds := appendPartKey(make([]byte, 0, 2*n), name, partHead)
	bounds = appendPartKey(bounds, name, partEnd)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: bounds[:n], UpperBound: bounds[n:]})
	if err != nil {
		return nil, replay.Head{}, err
	}
	var h head
	if it.First() && it.Key()[n-1] == partHead {
		h, err = parseHead(it.Value())
	} else if err = it.Error(); err == nil {
		err = replay.ErrNotFound
	}
	if err != nil {
		return nil, replay.Head{}, errors.Join(err, it.Close())
	}
	if !l.known {
		l.settle(h)
	}
	h.Note = bytes.Clone(h.Note)
	return it, h.Head, nil
}

// records returns an iterator over the records [first, end) of a log.
func (s *Store) records(name string, first, end uint64) (*pebble.Iterator, error) {
	n := recordKeyLen(name)
	bounds := appendRecordKey(make([]byte, 0, 2*n), name, first)
	bounds = appendRecordKey(bounds, name, end)
	return s.db.NewIter(&pebble.IterOptions{LowerBound: bounds[:n], UpperBound: bounds[n:]})
}

// seqOf returns the number in a record's key.
func seqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }
