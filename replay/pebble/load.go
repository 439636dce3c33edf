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

// Load implements replay.Writer.
func (w *writer) Load(ctx context.Context) (h replay.Head, snapshot []byte, records []replay.Record, err error) {
	s := w.store
	if err := s.enter(ctx); err != nil {
		return h, nil, nil, err
	}
	defer s.exit(&err)
	stored, snapshot, r, err := w.openLog()
	h = stored.Head
	if err != nil || r == nil {
		return h, snapshot, nil, err
	}
	kept, next := h.Kept(), h.After(h.First-1)
	// The sizes in the head are a hint only, and bounded as such: a damaged one must not cost memory.
	var data []byte
	if !stored.inline {
		data = make([]byte, 0, min(h.Bytes, 1<<20))
	}
	records = make([]replay.Record, 0, min(kept, 1<<14))
	for r.next() && r.seq == next {
		next = h.After(r.seq)
		if stored.inline {
			records = append(records, replay.Record{Seq: r.seq, Data: r.data})
			continue
		}
		if cap(data)-len(data) < len(r.data) {
			data = make([]byte, 0, max(len(r.data), cap(data)))
		}
		start := len(data)
		data = append(data, r.data...)
		records = append(records, replay.Record{Seq: r.seq, Data: data[start:len(data):len(data)]})
	}
	if err := r.close(); err != nil {
		return h, nil, nil, err
	}
	if uint64(len(records)) != kept {
		return h, nil, nil, errDamaged
	}
	return h, snapshot, records, nil
}

// Head implements replay.Writer.
func (w *writer) Head(ctx context.Context) (_ replay.Head, err error) {
	s := w.store
	if err := s.enter(ctx); err != nil {
		return replay.Head{}, err
	}
	defer s.exit(&err)
	if w.name == "" || len(w.name) > replay.MaxName {
		return replay.Head{}, replay.ErrNotFound
	}
	l := w.use()
	l.write.Lock()
	defer l.write.Unlock()
	h, err := l.stored(s.generation, false)
	return h.Head, err
}

// openLog returns the head and the snapshot of a log, and a reader of the records that belong to them; nil if none is
// kept. All of it is one committed state: the log is not written meanwhile.
func (w *writer) openLog() (_ head, snapshot []byte, r *records, err error) {
	s, name := w.store, w.name
	if name == "" || len(name) > replay.MaxName {
		return head{}, nil, nil, replay.ErrNotFound
	}
	l := w.use()
	l.write.Lock()
	defer l.write.Unlock()
	h, err := l.stored(s.generation, true)
	if err != nil {
		return head{}, nil, nil, err
	}
	if h.First > 1 { // something was trimmed
		if snapshot, err = s.snapshot(name); err != nil {
			return head{}, nil, nil, err
		}
	}
	switch {
	case h.inline:
		r = readEntry(h.entry, h.Last, h.First, h.Last)
	case h.First <= h.Last:
		r, err = s.readEntries(name, &h, h.First)
	}
	return h, snapshot, r, err
}

// snapshot returns the snapshot of a trimmed log.
func (s *Store) snapshot(name string) ([]byte, error) {
	value, closer, err := s.committedOf(name).Get(appendNameKey(nil, spaceSnapshot, name))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, errDamaged
	}
	if err != nil {
		return nil, err
	}
	snapshot := bytes.Clone(value)
	return snapshot, closer.Close()
}
