// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"io"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// reader implements replay.Reader. It holds nothing of the store but its place in it: it reads a page up to the last
// committed record, and once it has that record, waits for the next change. A reader keeping up gets new records from
// the log's tail in memory. A reader falling behind reads pages of the database, and meets the tail again.
type reader struct {
	store *Store
	name  string
	after uint64
	begun bool // it has read the log, in this generation or an earlier one

	records  []replay.Record // returned by Next
	page     *page           // their memory, if they were read from the database; nil while it holds none
	caughtUp bool            // no record follows them
	reserved int             // number of bytes the page may have
	wants    int             // number of bytes of the next page, if more than reserved
	holds    bool            // reserve was called, and not yet with 0

	of      *generation // of log
	log     *log
	version uint64 // log.version when it had read all
	seen    bool   // it has read log
	drops   uint64 // log.drops then

	down     bool   // it waits for another generation
	replaced uint64 // availability.replaced before the last read
	waiter   replay.Waiter
	position replay.Position
}

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
	if r.caughtUp || r.reserved > pageBytes {
		r.dropPage()
	}
	if r.holds && r.reserved == freeBytes {
		r.holds = false
		if err := reserve(ctx, 0); err != nil {
			return nil, false, err
		}
	}
	for {
		r.replaced = r.store.available.replaced.Load()
		v, err := r.read(ctx)
		_, failed := errors.AsType[*disk.Error](err)
		if r.down = failed && r.begun; r.down {
			r.dropPage()
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if r.wants > 0 {
			if r.holds { // readers holding some memory and waiting for more could wait for each other
				if err := reserve(ctx, 0); err != nil {
					return nil, false, err
				}
			}
			if err := reserve(ctx, int64(r.wants)); err != nil {
				return nil, false, err
			}
			r.reserved, r.holds = r.wants, true
			continue
		}
		if n := len(r.records); n > 0 {
			r.after = r.records[n-1].Seq
			r.position.Move(r.after)
			r.caughtUp = r.after == v.Last
			return r.records, !r.caughtUp, nil
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
	r.dropPage() // a waiting reader holds no records
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
	if !l.known || l.head.Last != r.after || l.drops != r.drops || !l.head.Ended.IsZero() {
		return true
	}
	l.catchUp(r)
	return false
}

// Unread implements replay.Store.
func (s *Store) Unread(name string, seq uint64) bool {
	if err := s.enter(context.Background()); err != nil {
		return false
	}
	var err error
	defer s.exit(&err)
	l := s.logs.use(name)
	defer s.logs.leave(l)
	l.mu.Lock()
	first := l.head.First
	l.mu.Unlock()
	return l.positions.Unread(first, seq)
}

// Alone implements replay.Reader.
func (r *reader) Alone() bool { return r.waiter.Alone() }

// Rewind implements replay.Reader.
func (r *reader) Rewind(after uint64) {
	r.dropPage()
	r.after, r.caughtUp = after, false
	r.position.Move(after)
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
		r.log.leave(r)
		r.of.logs.leave(r.log)
		r.of, r.log = nil, nil
	}
}

// dropPage gives the page back.
func (r *reader) dropPage() {
	r.page.put()
	r.records, r.page, r.reserved = nil, nil, freeBytes
}

// read returns the committed state of the log, and in r.records the records after r.after, some or all; none if the log
// changed meanwhile, or if they have more bytes than r.reserved. In the last case r.wants has their size.
func (r *reader) read(ctx context.Context) (v view, err error) {
	r.records, r.wants = nil, 0
	if err := r.store.enter(ctx); err != nil {
		return view{}, err
	}
	defer r.store.exit(&err)
	if r.of != r.store.generation {
		r.leave()
		r.of, r.log, r.seen = r.store.generation, r.store.logs.use(r.name), false
		r.log.join(r)
	}
	if v, err = r.view(); err != nil {
		return v, err
	}
	if v.First == 0 || r.seen && v.drops != r.drops {
		return v, replay.ErrNotFound
	}
	r.begun, r.seen, r.drops = true, true, v.drops
	if err := v.Reach(r.after); err != nil || r.after == v.Last {
		return v, err
	}
	if len(v.recent) > 0 {
		r.takeRecent(v.recent)
		return v, nil
	}
	return v, r.fill(&v)
}

// view returns the committed state of the log.
func (r *reader) view() (view, error) {
	l := r.log
	l.mu.Lock()
	if !l.known {
		l.mu.Unlock()
		return l.viewCommitted(r.store.generation)
	}
	defer l.mu.Unlock()
	v := view{head: l.head, drops: l.drops}
	if r.after == v.Last {
		l.catchUp(r)
	} else {
		v.recent = l.tail.from(v.After(r.after))
	}
	return v, nil
}

// takeRecent makes records of the log's tail the records returned by Next. They are shared, so memory is reserved only
// for a large one.
func (r *reader) takeRecent(recent []replay.Record) {
	if r.page != nil {
		r.dropPage()
	}
	n, size := 0, 0
	for ; n < len(recent) && n < pageRecords; n++ {
		if size += len(recent[n].Data); n > 0 && size > freeBytes {
			break
		}
	}
	if n == 1 && size > r.reserved {
		r.wants = size
		return
	}
	r.records = recent[:n]
}

// fill reads a page of the records after r.after.
func (r *reader) fill(v *view) error {
	usual := int(min(pageBytes, v.Bytes))
	if r.page != nil && r.reserved < usual { // this is not the first page
		r.page.put()
		r.page, r.wants = nil, usual
		return nil
	}
	if r.page == nil {
		r.page = newPage(r.reserved)
	}
	p := r.page
	p.reset()
	stored, err := r.store.generation.read(r.name, &v.head, r.after+1)
	if err != nil {
		return err
	}
	next := v.After(r.after)
	for len(p.records) < pageRecords && stored.next() && stored.seq == next {
		n := len(stored.data)
		if len(p.data)+n > r.reserved {
			if len(p.data) == 0 { // a large record has a page of its own
				r.wants = max(n, usual)
			}
			break
		}
		start := len(p.data)
		p.data = append(p.data, stored.data...)
		p.records = append(p.records, replay.Record{Seq: next, Data: p.data[start:len(p.data):len(p.data)]})
		next = v.After(next)
	}
	if err := stored.close(); err != nil || r.wants > 0 {
		return err
	}
	if r.records = p.records; len(r.records) > 0 {
		return nil
	}
	// The next record was there when the state was read, so it has been dropped since. Otherwise it is lost.
	if now, err := r.log.viewCommitted(r.store.generation); err != nil || now.First == v.First && now.drops == v.drops {
		return errors.Join(errDamaged, err)
	}
	return nil
}
