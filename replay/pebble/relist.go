// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// relistPage is the number of heads that Relist reads at a time.
const relistPage = 1024

// Relist implements replay.Store. A log at a time is locked, so that the store can be used meanwhile.
func (s *Store) Relist(ctx context.Context, lists func(log string, metadata []byte) []replay.Listing) error {
	if some, err := s.hasUnlisted(ctx); err != nil || !some {
		return err
	}
	for lower, more := []byte{spaceHead}, true; more; {
		var names []string
		var err error
		if names, lower, more, err = s.unlisted(ctx, lower); err != nil {
			return err
		}
		for _, name := range names {
			if err := s.relist(ctx, name, lists); err != nil {
				return err
			}
		}
	}
	return s.allListed(ctx)
}

// hasUnlisted returns whether there may be heads of a format that knew no lists.
func (s *Store) hasUnlisted(ctx context.Context) (_ bool, err error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.exit(&err)
	_, closer, err := s.settled().Get(unlistedKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

// unlisted returns the names of logs without lists among some heads whose keys begin at lower, where the keys of the
// rest begin, and whether there is a rest.
func (s *Store) unlisted(ctx context.Context, lower []byte) (names []string, rest []byte, more bool, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, nil, false, err
	}
	defer s.exit(&err)
	it, err := s.settled().NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: []byte{spaceHead + 1}})
	if err != nil {
		return nil, nil, false, err
	}
	n := 0
	for ok := it.First(); ok && !more; ok = it.Next() {
		name := string(it.Key()[1:])
		h, err := parseHead(it.Value(), name, 0)
		if err == nil && len(h.Lists) == 0 { // a damaged one is an error of those who read it
			names = append(names, name)
		}
		if n++; n == relistPage {
			more, rest = true, append(bytes.Clone(it.Key()), 0) // the least key that is greater
		}
	}
	return names, rest, more, errors.Join(it.Error(), it.Close())
}

// relist gives lists to a log that has none.
func (s *Store) relist(ctx context.Context, name string, lists func(string, []byte) []replay.Listing) (err error) {
	if err := s.enterToWrite(ctx); err != nil {
		return err
	}
	defer s.exit(&err)
	l := s.logs.use(name)
	defer s.logs.leave(l)
	l.write.Lock()
	defer l.write.Unlock()
	h, err := l.stored(s.generation, true)
	if errors.Is(err, replay.ErrNotFound) || err == nil && (h.pending || len(h.Lists) > 0) {
		return nil // it was dropped, or appended to
	}
	if err != nil {
		return err
	}
	a := replay.Append{Log: name, Metadata: h.Metadata, Lists: lists(name, h.Metadata)}
	if len(a.Lists) == 0 {
		return nil
	}
	if _, err := a.Next(replay.Head{}, h.Ended); err != nil {
		return err
	}
	h.Lists = a.Lists
	b := s.db.NewBatchWithSize(batchSize(&a) + len(h.entry))
	defer b.Close()
	moveLists(b, name, nil, h.Lists)
	setHead(b, name, &h, h.entry, nil)
	if err := s.commit(b, 0, false); err != nil {
		return err
	}
	l.publish(h, nil)
	return nil
}

// NoteUnlisted records that there may be logs without lists that are to have some: the store was filled from an
// archive, which has no lists. No other call may use the store meanwhile.
func (s *Store) NoteUnlisted() (err error) {
	if err := s.enterToWrite(context.Background()); err != nil {
		return err
	}
	defer s.exit(&err)
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.Set(unlistedKey, nil, nil); err != nil {
		return err
	}
	return s.commit(b, 0, true)
}

// allListed records that there are no heads any more of a format that knew no lists.
func (s *Store) allListed(ctx context.Context) (err error) {
	if err := s.enterToWrite(ctx); err != nil {
		return err
	}
	defer s.exit(&err)
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.Delete(unlistedKey, nil); err != nil {
		return err
	}
	return s.commit(b, 0, true)
}
