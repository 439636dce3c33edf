// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

var errDamaged = errors.New("replay/pebble: parts of a log are missing")

// Load implements replay.Store.
func (s *Store) Load(ctx context.Context, name string) (h replay.Head, snapshot []byte, records []replay.Record,
	err error) {
	if err := s.enter(ctx); err != nil {
		return h, nil, nil, err
	}
	defer s.exit(&err)
	h, snapshot, it, err := s.openLog(name)
	if err != nil || it == nil {
		return h, snapshot, nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	kept, next := h.Kept(), h.After(h.First-1)
	// What the head says of the sizes is a hint only, and bounded as such: a damaged one must not cost memory.
	data := make([]byte, 0, min(h.Bytes, 1<<20))
	records = make([]replay.Record, 0, min(kept, 1<<14))
	for ok := it.First(); ok; ok = it.Next() {
		seq, value := seqOf(it.Key()), it.Value()
		if seq != next {
			return h, nil, nil, errDamaged
		}
		next = h.After(seq)
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

// Head implements replay.Store.
func (s *Store) Head(ctx context.Context, name string) (_ replay.Head, err error) {
	if err := s.enter(ctx); err != nil {
		return replay.Head{}, err
	}
	defer s.exit(&err)
	if name == "" || len(name) > replay.MaxName {
		return replay.Head{}, replay.ErrNotFound
	}
	l := s.logs.use(name)
	defer s.logs.leave(l)
	l.write.Lock()
	defer l.write.Unlock()
	h, err := l.stored(s.db)
	return h.Head, err
}

// openLog returns the head and the snapshot of a log, and an iterator that sees the records that belong to them;
// nil if none is kept. All of it is one committed state: the log is not written meanwhile.
func (s *Store) openLog(name string) (_ replay.Head, snapshot []byte, it *pebble.Iterator, err error) {
	if name == "" || len(name) > replay.MaxName {
		return replay.Head{}, nil, nil, replay.ErrNotFound
	}
	l := s.logs.use(name)
	defer s.logs.leave(l)
	l.write.Lock()
	defer l.write.Unlock()
	h, err := l.stored(s.db)
	if err != nil {
		return replay.Head{}, nil, nil, err
	}
	if h.First > 1 { // something was trimmed
		if snapshot, err = s.snapshot(name); err != nil {
			return replay.Head{}, nil, nil, err
		}
	}
	if h.First <= h.Last {
		if it, err = s.records(name, h.First, h.Last+1); err != nil {
			return replay.Head{}, nil, nil, err
		}
	}
	return h.Head, snapshot, it, nil
}

// snapshot returns the snapshot of a log of which something was trimmed.
func (s *Store) snapshot(name string) ([]byte, error) {
	value, closer, err := s.db.Get(appendNameKey(nil, spaceSnapshot, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, errDamaged
	}
	if err != nil {
		return nil, err
	}
	snapshot := bytes.Clone(value)
	return snapshot, closer.Close()
}

// records returns an iterator over the records [first, end) of a log.
func (s *Store) records(name string, first, end uint64) (*pebble.Iterator, error) {
	n := recordKeyLen(name)
	bounds := appendRecordKey(make([]byte, 0, 2*n), name, first)
	bounds = appendRecordKey(bounds, name, end)
	return s.db.NewIter(&pebble.IterOptions{LowerBound: bounds[:n], UpperBound: bounds[n:]})
}
