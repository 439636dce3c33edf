// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/aip-gateway/aip-gateway/replay"
)

// A page has at most so many records, and ends early when it has so many bytes.
const (
	pageRecords = 1024
	pageBytes   = 256 << 10

	freeBytes = 16 << 10 // read without a call of reserve
)

// reader implements replay.Reader. It holds nothing of the store but its place in it: it reads a page up to the last
// record that is committed, and once it has that one, waits for the next change.
type reader struct {
	store *Store
	name  string
	after uint64
	begun bool // it has read the log, in this generation or an earlier one

	page     *page // as Next returned it last; nil while it holds none
	caughtUp bool  // no record follows those in page
	reserved int   // how many bytes the page may have
	wants    int   // how many bytes the next page has, where that is more than reserved
	holds    bool  // reserve was called, and not yet with 0

	of   *generation // whose log is log
	log  *log
	seen bool   // it has read log
	life uint64 // log.life then

	down     bool   // it waits for another generation
	replaced uint64 // availability.replaced before the last read
	waiter   replay.Waiter
}

// page is the memory of the records that a reader returns.
type page struct {
	records []replay.Record
	data    []byte // of the records, one behind the other
}

// pages has pages that are not in use.
var pages = sync.Pool{New: func() any { return new(page) }}

// Read implements replay.Store.
func (s *Store) Read(name string, after uint64) replay.Reader {
	return &reader{store: s, name: name, after: after, reserved: freeBytes}
}

// Next implements replay.Reader.
func (r *reader) Next(ctx context.Context, reserve replay.Reserve) ([]replay.Record, bool, error) {
	if r.name == "" || len(r.name) > replay.MaxName {
		return nil, false, replay.ErrNotFound
	}
	if reserve == nil {
		reserve = func(context.Context, int64) error { return nil }
	}
	// Otherwise the next page uses the same memory.
	if r.holds && (r.reserved > pageBytes || r.caughtUp || r.page == nil) {
		r.dropPage()
		r.holds = false
		if err := reserve(ctx, 0); err != nil {
			return nil, false, err
		}
	}
	for {
		r.replaced = r.store.available.replaced.Load()
		v, err := r.read(ctx)
		_, failed := errors.AsType[*diskError](err)
		if r.down = failed && r.begun; r.down {
			r.dropPage()
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if r.wants > 0 {
			if err := reserve(ctx, int64(r.wants)); err != nil {
				return nil, false, err
			}
			r.reserved, r.holds = r.wants, true
			continue
		}
		if r.page != nil && len(r.page.records) > 0 {
			r.after = r.page.records[len(r.page.records)-1].Seq
			r.caughtUp = r.after == v.Last
			return r.page.records, !r.caughtUp, nil
		}
		if r.caughtUp = r.after == v.Last; !r.caughtUp {
			continue // the log changed meanwhile
		}
		if !v.Ended.IsZero() {
			return nil, false, io.EOF
		}
		return nil, false, nil
	}
}

// Wake implements replay.Reader.
func (r *reader) Wake(f func()) {
	r.waiter.Remove()
	if f == nil {
		return
	}
	r.dropPage() // a reader that waits holds no records
	switch {
	case r.down:
		r.store.available.waiters.Add(&r.waiter, f)
	case r.log != nil:
		r.log.waiters.Add(&r.waiter, f)
	default:
		f()
		return
	}
	if r.ready() && r.waiter.Remove() {
		f()
	}
}

// ready reports whether Next has something to return.
func (r *reader) ready() bool {
	select {
	case <-r.store.done:
		return true
	default:
	}
	switch {
	case r.down:
		return r.store.available.replaced.Load() != r.replaced
	case r.of.logs.over.Load():
		return true
	}
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.known || l.head.Last != r.after || l.life != r.life || !l.head.Ended.IsZero()
}

// Close implements replay.Reader.
func (r *reader) Close() {
	r.waiter.Remove()
	r.dropPage()
	r.leave()
}

// leave ends the use of the log.
func (r *reader) leave() {
	if r.of != nil {
		r.of.logs.leave(r.log)
		r.of, r.log = nil, nil
	}
}

// dropPage gives the page back.
func (r *reader) dropPage() {
	if p := r.page; p != nil {
		clear(p.records)
		p.records, p.data = p.records[:0], p.data[:0]
		if cap(p.data) <= 2*pageBytes {
			pages.Put(p)
		}
	}
	r.page, r.reserved = nil, freeBytes
}

// read returns the committed state of the log, and in r.page the records that follow r.after, some or all; none
// when the log changed meanwhile, or when they have more bytes than r.reserved, which r.wants then says.
func (r *reader) read(ctx context.Context) (v view, err error) {
	if r.page != nil {
		r.page.records, r.page.data = r.page.records[:0], r.page.data[:0]
	}
	r.wants = 0
	if err := r.store.enter(ctx); err != nil {
		return view{}, err
	}
	defer r.store.exit(&err)
	if r.of != r.store.generation {
		r.leave()
		r.of, r.log, r.seen = r.store.generation, r.store.logs.use(r.name), false
	}
	if v, err = r.log.view(r.store.db); err != nil {
		return v, err
	}
	if v.First == 0 || r.seen && v.life != r.life {
		return v, replay.ErrNotFound
	}
	r.begun, r.seen, r.life = true, true, v.life
	if err := v.Reach(r.after); err != nil || r.after == v.Last {
		return v, err
	}
	return v, r.fill(&v)
}

// fill reads a page of the records that follow r.after.
func (r *reader) fill(v *view) error {
	it, err := r.store.records(r.name, r.after+1, v.Last+1)
	if err != nil {
		return err
	}
	if r.page == nil {
		r.page = pages.Get().(*page)
	}
	limit := pageBytes
	if r.reserved > freeBytes {
		limit = r.reserved
	}
	size, count, next := 0, 0, v.After(r.after)
	p := r.page
	for ok := it.First(); ok && seqOf(it.Key()) == next && count < pageRecords && size < pageBytes; ok = it.Next() {
		n := len(it.Value())
		if size > 0 && size+n > limit {
			break // a large record has a page of its own
		}
		if size += n; size > r.reserved {
			r.wants = size
		} else {
			start := len(p.data)
			p.data = append(p.data, it.Value()...)
			p.records = append(p.records, replay.Record{Seq: next, Data: p.data[start:len(p.data):len(p.data)]})
		}
		count++
		next = v.After(next)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil || r.wants > 0 {
		return err
	}
	if len(p.records) > 0 {
		return nil
	}
	// The next record was there when the state was read, so it has been dropped since. Otherwise it is lost.
	if now, err := r.log.viewCommitted(r.store.db); err != nil || now.First == v.First && now.life == v.life {
		return errors.Join(errDamaged, err)
	}
	return nil
}
