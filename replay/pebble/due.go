// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// duePage is the number of logs that Due reads at a time.
const duePage = 256

// Due implements replay.Store. It reads pages of a snapshot, so that it holds nothing else of the store while the
// caller works on what it yields, and Close need not wait for that.
func (s *Store) Due(ctx context.Context, from, until time.Time) iter.Seq2[replay.Wakeup, error] {
	return func(yield func(replay.Wakeup, error) bool) {
		lower := appendTimeKey(nil, spaceWake, max(stampOf(from), 1), "")
		upper := appendTimeKey(nil, spaceWake, stampOf(until)+1, "")
		if bytes.Compare(lower, upper) >= 0 {
			upper = lower // no logs at all; but a ctx that is done, or a store that is closed, is still told
		}
		snapshot, err := s.takeSnapshot(ctx)
		if err != nil {
			yield(replay.Wakeup{}, err)
			return
		}
		defer s.dropSnapshot(snapshot)
		for page := make([]replay.Wakeup, 0, duePage); ; {
			page, lower, err = s.duePage(ctx, snapshot, lower, upper, page[:0])
			if err != nil {
				yield(replay.Wakeup{}, err)
				return
			}
			for _, w := range page {
				if err := ctx.Err(); err != nil {
					yield(replay.Wakeup{}, err)
					return
				}
				if !yield(w, nil) {
					return
				}
			}
			if len(page) < duePage {
				return
			}
		}
	}
}

// duePage appends to page the entries of the index by Wake that lie in [lower, upper), until it is full, and
// returns with it the lower bound of what is left.
func (s *Store) duePage(ctx context.Context, snapshot *pebble.Snapshot, lower, upper []byte, page []replay.Wakeup) (
	[]replay.Wakeup, []byte, error,
) {
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer s.exit()
	it, err := snapshot.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, nil, err
	}
	for ok := it.First(); ok && len(page) < cap(page); ok = it.Next() {
		at, log := splitTimeKey(it.Key())
		page = append(page, replay.Wakeup{Log: log, At: at.time()})
		if len(page) == cap(page) {
			lower = append(append(lower[:0:0], it.Key()...), 0) // the least key that is greater
		}
	}
	return page, lower, errors.Join(it.Error(), it.Close())
}

// splitTimeKey takes a key of an index by time apart.
func splitTimeKey(key []byte) (stamp, string) {
	return stamp(binary.BigEndian.Uint64(key[1:])), string(key[1+8:])
}

// takeSnapshot returns a snapshot, which belongs to the store so that Close can release it.
func (s *Store) takeSnapshot(ctx context.Context) (*pebble.Snapshot, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit()
	snapshot := s.db.NewSnapshot()
	s.snapshotsMu.Lock()
	defer s.snapshotsMu.Unlock()
	s.snapshots[snapshot] = struct{}{}
	return snapshot, nil
}

// dropSnapshot releases a snapshot, unless Close has done so.
func (s *Store) dropSnapshot(snapshot *pebble.Snapshot) {
	s.snapshotsMu.Lock()
	defer s.snapshotsMu.Unlock()
	if _, ok := s.snapshots[snapshot]; ok {
		delete(s.snapshots, snapshot)
		_ = snapshot.Close() // always nil
	}
}
