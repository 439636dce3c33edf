// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"io"
)

// memoryReader implements Reader. It copies no records.
type memoryReader struct {
	store    *Memory
	name     string
	log      *memoryLog // nil before a Next has found it
	after    uint64
	waiter   Waiter
	position Position
}

// Read implements Store.
func (m *Memory) Read(log string, after uint64) Reader {
	return &memoryReader{store: m, name: log, after: after}
}

// Next implements Reader. It is a use of the log, as Load is.
func (r *memoryReader) Next(ctx context.Context, _ Reserve) ([]Record, bool, error) {
	m := r.store
	if err := m.enter(ctx); err != nil {
		return nil, false, err
	}
	defer m.mu.Unlock()
	if r.log == nil {
		if l, ok := m.index.Value(r.name); ok {
			r.log = l
			l.readers.Join(&r.position, r.after)
		}
	}
	l := r.log
	if l == nil || l.dropped {
		return nil, false, ErrNotFound
	}
	in, _ := m.index.Use(r.name)
	head := in.Head
	if err := head.Reach(r.after); err != nil {
		return nil, false, err
	}
	page := l.page(r.after, readPage)
	if len(page) == 0 {
		if !head.Ended.IsZero() {
			return nil, false, io.EOF
		}
		return nil, false, nil
	}
	r.after = page[len(page)-1].Seq
	r.position.Move(r.after)
	return page, r.after < head.Last, nil
}

// Wake implements Reader.
func (r *memoryReader) Wake(f func()) {
	r.waiter.Remove()
	switch {
	case f == nil:
	case r.log == nil:
		f()
	default:
		r.log.waiters.Add(&r.waiter, f)
		if r.ready() && r.waiter.Remove() {
			f()
		}
	}
}

// ready reports whether Next has something to return.
func (r *memoryReader) ready() bool {
	m := r.store
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || r.log.dropped {
		return true
	}
	l, _ := m.index.Get(r.name)
	return !l.Head.Ended.IsZero() || l.Head.Last != r.after
}

// Rewind implements Reader.
func (r *memoryReader) Rewind(after uint64) {
	r.after = after
	r.position.Move(after)
}

// Alone implements Reader.
func (r *memoryReader) Alone() bool { return r.waiter.Alone() }

// Close implements Reader.
func (r *memoryReader) Close() {
	r.waiter.Remove()
	r.position.Leave()
}

// Unread implements Store.
func (m *Memory) Unread(log string, seq uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.index.Get(log)
	return ok && l.Value.readers.Unread(l.Head.First, seq)
}
