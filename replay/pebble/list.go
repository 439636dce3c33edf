// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// listPage is the number of heads List reads at a time. A page ends early when its metadata have pageBytes.
const listPage = 256

// List implements replay.Store. It reads pages of the state committed at that moment, and holds nothing of the store
// between them. It waits for no log's writer, so a head may come from an Append that has not returned yet.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[replay.Entry, error] {
	return func(yield func(replay.Entry, error) bool) {
		after := after
		replay.InPages(ctx, yield, func(page []replay.Entry) (_ []replay.Entry, more bool, err error) {
			clear(page[:cap(page)]) // holds no metadata
			page, more, err = s.listPage(ctx, prefix, after, page)
			if len(page) > 0 {
				after = page[len(page)-1].Log
			}
			return page, more, err
		})
	}
}

// listPage appends to page the heads List yields after a name, until there are enough, and returns whether there may be
// more.
func (s *Store) listPage(ctx context.Context, prefix, after string, page []replay.Entry) (_ []replay.Entry, more bool,
	err error) {
	if err := s.enter(ctx); err != nil {
		return nil, false, err
	}
	defer s.exit(&err)
	lower, upper := headBounds(prefix, after)
	pending := s.intents.list(prefix, after, listPage) // an intent becoming a log from here on is in the database
	state := s.committed().NewSnapshot()               // a head and the entries that follow it
	defer func() { err = errors.Join(err, state.Close()) }()
	it, err := state.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, false, err
	}
	size := 0
	for ok := it.First(); (ok || len(pending) > 0) && !more; {
		var entry replay.Entry
		if ok {
			entry.Log = string(it.Key()[1:])
		}
		if len(pending) > 0 && (!ok || pending[0].Log < entry.Log) {
			entry, pending = pending[0], pending[1:]
		} else {
			h, err := parseHead(it.Value(), entry.Log, s.logs.losses.Load())
			if err == nil {
				err = h.follow(state, entry.Log)
			}
			if err != nil {
				return nil, false, errors.Join(err, it.Close())
			}
			h.Metadata = bytes.Clone(h.Metadata)
			entry.Head = h.Head
			if len(pending) > 0 && pending[0].Log == entry.Log {
				pending = pending[1:]
			}
			ok = it.Next()
		}
		page = append(page, entry)
		size += len(entry.Head.Metadata)
		more = len(page) == listPage || size >= pageBytes
	}
	return page, more, errors.Join(it.Error(), it.Close())
}
