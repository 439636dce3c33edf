// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/aip-gateway/aip-gateway/replay"
)

// A follower reads pages of at most so many records, and ends one early when it has so many bytes.
const (
	pageRecords = 256
	pageBytes   = 256 << 10

	freeBytes = 16 << 10 // read without a call of reserve
)

// Follow implements replay.Store. A follower holds nothing of the store but its place in it: it reads a page up
// to the last record that is committed, and once it has that one, waits for the next change.
func (s *Store) Follow(
	ctx context.Context, name string, after uint64, reserve replay.Reserve,
) iter.Seq2[replay.Record, error] {
	return func(yield func(replay.Record, error) bool) {
		if name == "" || len(name) > replay.MaxName {
			yield(replay.Record{}, replay.ErrNotFound)
			return
		}
		if reserve == nil {
			reserve = func(context.Context, int64) error { return nil }
		}
		f := follower{store: s, name: name, after: after, reserved: freeBytes}
		defer f.leave()
		for {
			replaced := s.available.whenReplaced()
			v, err := f.read(ctx)
			if err != nil {
				if _, failed := errors.AsType[*diskError](err); !failed || !f.begun {
					yield(replay.Record{}, err)
					return
				}
				f.page = nil
				select { // continues with the next generation
				case <-replaced:
				case <-ctx.Done():
				case <-s.done:
				}
				continue
			}
			if f.wants > 0 {
				if err := reserve(ctx, int64(f.wants)); err != nil {
					yield(replay.Record{}, err)
					return
				}
				f.reserved = f.wants
				continue
			}
			for _, r := range f.page {
				if err := ctx.Err(); err != nil {
					yield(replay.Record{}, err)
					return
				}
				if !yield(r, nil) {
					return
				}
				f.after = r.Seq
			}
			// Otherwise the next page uses the same memory.
			if f.reserved > pageBytes || f.reserved > freeBytes && f.after >= v.Last {
				f.page, f.reserved = nil, freeBytes
				if err := reserve(ctx, 0); err != nil {
					yield(replay.Record{}, err)
					return
				}
			}
			if f.after < v.Last {
				continue
			}
			if !v.Ended.IsZero() {
				return
			}
			f.page = nil // a follower that waits holds no records
			select {
			case <-v.news:
			case <-ctx.Done():
			case <-s.done:
			case <-replaced:
			}
		}
	}
}

// follower is one that follows a log.
type follower struct {
	store    *Store
	name     string
	after    uint64
	begun    bool // it has read the log, in this generation or an earlier one
	page     []replay.Record
	reserved int // how many bytes the page may have
	wants    int // how many bytes the next page has, where that is more than reserved

	of   *generation // whose log is log
	log  *log
	seen bool   // it has read log
	life uint64 // log.life then
}

// leave ends the use of the log.
func (f *follower) leave() {
	if f.of != nil {
		f.of.logs.leave(f.log)
	}
}

// read returns the committed state of the log, and in f.page the records that follow f.after, some or all; none
// when the log changed meanwhile, or when they have more bytes than f.reserved, which f.wants then says.
func (f *follower) read(ctx context.Context) (v view, err error) {
	clear(f.page)
	f.page, f.wants = f.page[:0], 0
	if err := f.store.enter(ctx); err != nil {
		return view{}, err
	}
	defer f.store.exit(&err)
	if f.of != f.store.generation {
		f.leave()
		f.of, f.log, f.seen = f.store.generation, f.store.logs.use(f.name), false
	}
	if v, err = f.log.view(f.store.db); err != nil {
		return v, err
	}
	if v.First == 0 || f.seen && v.life != f.life {
		return v, replay.ErrNotFound
	}
	f.begun, f.seen, f.life = true, true, v.life
	if err := v.Reach(f.after); err != nil || f.after == v.Last {
		return v, err
	}

	it, err := f.store.records(f.name, f.after+1, v.Last+1)
	if err != nil {
		return v, err
	}
	limit := pageBytes
	if f.reserved > freeBytes {
		limit = f.reserved
	}
	size, count, next := 0, 0, v.After(f.after)
	for ok := it.First(); ok && seqOf(it.Key()) == next && count < pageRecords && size < pageBytes; ok = it.Next() {
		n := len(it.Value())
		if size > 0 && size+n > limit {
			break // a large record has a page of its own
		}
		if size += n; size > f.reserved {
			f.wants = size
			f.page = nil
		} else {
			data := bytes.Clone(it.Value())
			f.page = append(f.page, replay.Record{Seq: next, Data: data, More: next < v.Last})
		}
		count++
		next = v.After(next)
	}
	if f.wants > 0 {
		return v, errors.Join(it.Error(), it.Close())
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil || len(f.page) > 0 {
		return v, err
	}
	// The next record was there when the state was read, so it has been dropped since. Otherwise it is lost.
	if now, err := f.log.viewCommitted(f.store.db); err != nil || now.First == v.First && now.life == v.life {
		return v, errors.Join(errDamaged, err)
	}
	return v, nil
}
