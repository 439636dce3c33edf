// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// duePage is the number of logs Due reads at a time.
const duePage = 256

// Due implements replay.Store. It reads pages of a snapshot, so it holds nothing else of the store while the caller
// works on the yielded logs, and Close need not wait for the caller.
func (s *Store) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[replay.DueLog, error] {
	return func(yield func(replay.DueLog, error) bool) {
		lower := appendDueKey(nil, max(stampOf(from), 1), string([]byte{class}))
		upper := appendDueKey(nil, stampOf(until)+1, string([]byte{class}))
		if bytes.Compare(lower, upper) >= 0 {
			upper = lower // no logs at all, but still the error of a done ctx or a closed store
		}
		pending := s.intents.due(lower, upper)
		of, snapshot, err := s.takeSnapshot(ctx)
		if err != nil {
			yield(replay.DueLog{}, err)
			return
		}
		defer of.dropSnapshot(snapshot)
		if pending, err = s.pendingAt(ctx, of, snapshot, pending); err != nil {
			yield(replay.DueLog{}, err)
			return
		}
		replay.InPages(ctx, yield, func(page []replay.DueLog) (_ []replay.DueLog, more bool, err error) {
			page, lower, err = s.duePage(ctx, of, snapshot, pending, lower, upper, page)
			return page, len(page) == duePage, err
		})
	}
}

// pendingAt returns the keys of intents without a log in a snapshot.
func (s *Store) pendingAt(
	ctx context.Context, of *generation, snapshot *pebble.Snapshot, keys [][]byte,
) (pending [][]byte, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit(&err)
	if s.generation != of {
		return nil, errReplaced
	}
	for _, key := range keys {
		_, log := splitDueKey(key)
		_, closer, err := snapshot.Get(appendNameKey(nil, spaceHead, log))
		switch {
		case errors.Is(err, pebble.ErrNotFound):
			pending = append(pending, key)
		case err != nil:
			return nil, err
		default:
			_ = closer.Close() // always nil
		}
	}
	return pending, nil
}

// duePage appends to page the entries of the index by DueAt in [lower, upper), with the keys of intents, until there
// are enough, and returns with it the lower bound of the rest. The snapshot is one of a generation, and gone when the
// generation is replaced.
func (s *Store) duePage(
	ctx context.Context, of *generation, snapshot *pebble.Snapshot, pending [][]byte, lower, upper []byte,
	page []replay.DueLog,
) (_ []replay.DueLog, _ []byte, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer s.exit(&err)
	if s.generation != of {
		return nil, nil, errReplaced
	}
	it, err := snapshot.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, nil, err
	}
	i, _ := slices.BinarySearchFunc(pending, lower, bytes.Compare)
	pending = pending[i:]
	for ok := it.First(); (ok || len(pending) > 0) && len(page) < duePage; {
		key, stored := it.Key(), true
		if len(pending) > 0 && (!ok || bytes.Compare(pending[0], key) < 0) {
			key, pending, stored = pending[0], pending[1:], false
		}
		at, log := splitDueKey(key)
		page = append(page, replay.DueLog{Log: log, At: at.time()})
		if len(page) == duePage {
			lower = append(bytes.Clone(key), 0) // the least greater key
		}
		if stored {
			ok = it.Next()
		}
	}
	return page, lower, errors.Join(it.Error(), it.Close())
}

// takeSnapshot returns a snapshot. It belongs to a generation, so the end of the generation can release it.
func (s *Store) takeSnapshot(ctx context.Context) (_ *generation, _ *pebble.Snapshot, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer s.exit(&err)
	snapshot := s.committed().NewSnapshot()
	s.snapshotsMu.Lock()
	defer s.snapshotsMu.Unlock()
	s.snapshots[snapshot] = struct{}{}
	return s.generation, snapshot, nil
}

// dropSnapshot releases a snapshot, unless the end of the generation has done so.
func (g *generation) dropSnapshot(snapshot *pebble.Snapshot) {
	g.snapshotsMu.Lock()
	defer g.snapshotsMu.Unlock()
	if _, ok := g.snapshots[snapshot]; ok {
		delete(g.snapshots, snapshot)
		_ = snapshot.Close() // always nil
	}
}
