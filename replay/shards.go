// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Shards are the stores of several processes that share their work. Each log is in one shard, and each shard has one
// owner at a time, which alone appends to its logs: so it can keep in memory what it has read of them. The methods may
// be called by any number of goroutines at once.
type Shards interface {
	// Count returns how many shards there are, at least one. It is the same for all processes, and never changes.
	Count() int

	// Logs returns the logs of a shard to read them. Another process may own the shard.
	Logs(shard int) Logs

	// Open waits until this process is to own a shard, and makes it the owner: from now on, the appends of the owner
	// before fail with ErrFenced, and change nothing. The process owns the shard until the store is closed, or another
	// process takes it over; lost is closed when it should close the store, or has lost the shard already. A shard is
	// open at most once in a process. Readers of Logs go on meanwhile.
	Open(ctx context.Context, shard int) (store Store, lost <-chan struct{}, err error)
}

// Logs are the logs of a shard, for those who read them without owning it.
type Logs interface {
	// The methods of a Store.
	Load(ctx context.Context, log string) (Head, []byte, []Record, error)
	Head(ctx context.Context, log string) (Head, error)
	Read(log string, after uint64) Reader
	Listed(ctx context.Context, list string, after ListedLog) iter.Seq2[ListedLog, error]
}

// ErrFenced is the error of an append by a process that owns the shard no longer. To the process, the store is closed.
var ErrFenced = fmt.Errorf("another process owns the shard now: %w", ErrClosed)

// ShardOf returns which of a number of shards has a key, which is given in parts. All processes agree on it, so it must
// not change.
func ShardOf(shards int, key ...string) int {
	if shards == 1 {
		return 0
	}
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, part := range key {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h *= prime // a zero byte, which no part has
	}
	return int((h ^ h>>32) % uint64(shards))
}

// HeldBy returns what says whether the owner of a store may act outside it now, such as by a message to an agent: nil
// if it may. It is called right before each act; an append that says what is done comes before. An error says that
// another process may have taken the shard over, and may pass. HeldBy returns nil if the owner always may, which is so
// for a store that is not shared.
func HeldBy(s Store) func() error {
	if h, ok := s.(interface{ Held() error }); ok {
		return h.Held
	}
	return nil
}

// heldPoll is how often a wait for HeldBy looks.
const heldPoll = 50 * time.Millisecond

// WhenHeld returns what waits until HeldBy allows the owner of a store to act, or until the context is done, whose
// error it returns then: the engines of a shard that is lost are closed. It is nil where HeldBy is.
func WhenHeld(s Store) func(ctx context.Context) error {
	held := HeldBy(s)
	if held == nil {
		return nil
	}
	return func(ctx context.Context) error {
		for held() != nil {
			select {
			case <-time.After(heldPoll):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
}
