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
)

// Follow implements replay.Store. A follower holds nothing of the store but its place in it: it reads a page up
// to the last record that is committed, and once it has that one, waits for the next change.
func (s *Store) Follow(ctx context.Context, name string, after uint64) iter.Seq2[replay.Record, error] {
	return func(yield func(replay.Record, error) bool) {
		if name == "" || len(name) > replay.MaxName {
			yield(replay.Record{}, replay.ErrNotFound)
			return
		}
		f := follower{store: s, log: s.logs.use(name), after: after}
		defer s.logs.leave(f.log)
		for {
			v, err := f.read(ctx)
			if err != nil {
				yield(replay.Record{}, err)
				return
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
			if f.after < v.Last {
				continue
			}
			if !v.Ended.IsZero() {
				return
			}
			f.page = nil // who rests holds no records
			select {
			case <-v.news:
			case <-ctx.Done():
			case <-s.done:
			case <-s.wal.broken:
			}
		}
	}
}

// follower is one that follows a log.
type follower struct {
	store *Store
	log   *log
	after uint64
	life  uint64 // log.life when it began; valid when begun
	begun bool
	page  []replay.Record
}

// read returns the committed state of the log, and in f.page the records that follow f.after, some or all; none
// when the log changed under its hands.
func (f *follower) read(ctx context.Context) (view, error) {
	clear(f.page)
	f.page = f.page[:0]
	if err := f.store.enter(ctx); err != nil {
		return view{}, err
	}
	defer f.store.exit()
	v, err := f.log.view(f.store.db)
	if err != nil {
		return v, err
	}
	if v.First == 0 || f.begun && v.life != f.life {
		return v, replay.ErrNotFound
	}
	f.begun, f.life = true, v.life
	if err := v.Reach(f.after); err != nil || f.after == v.Last {
		return v, err
	}

	it, err := f.store.records(f.log.name, f.after+1, v.Last+1)
	if err != nil {
		return v, err
	}
	size, next := 0, v.After(f.after)
	for ok := it.First(); ok && seqOf(it.Key()) == next && len(f.page) < pageRecords && size < pageBytes; ok = it.Next() {
		data := bytes.Clone(it.Value())
		f.page = append(f.page, replay.Record{Seq: next, Data: data, More: next < v.Last})
		size += len(data)
		next = v.After(next)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil || len(f.page) > 0 {
		return v, err
	}
	// The record that is owed was there when the state was looked at, so it was dropped since. Otherwise it is lost.
	if now, err := f.log.viewSettled(f.store.db); err != nil || now.First == v.First && now.life == v.life {
		return v, errors.Join(errDamaged, err)
	}
	return v, nil
}
