// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Shards are the stores of several processes sharing their work. Each log is in one shard, and each shard has one owner
// at a time. The owner alone appends to its logs: so it can keep the read parts of them in memory. The methods may be
// called by any number of goroutines at once.
type Shards interface {
	// Count returns the number of shards, at least one. It is the same for all processes, and never changes.
	Count() int

	// Logs returns the logs of a shard to read them. Another process may own the shard.
	Logs(shard int) Logs

	// Open waits until this process is to own a shard, and makes it the owner: from now on, the appends of the owner
	// before fail with ErrFenced, and change nothing. The process owns the shard until the store is closed, or another
	// process takes it over; lost is closed when it should close the store, or has lost the shard already. A shard is
	// open at most once in a process. Readers of Logs go on meanwhile.
	Open(ctx context.Context, shard int) (store Store, lost <-chan struct{}, err error)
}

// Logs are the logs of a shard, for readers without ownership.
type Logs interface {
	// The methods of a Store.
	Load(ctx context.Context, log string) (Head, []byte, []Record, error)
	Head(ctx context.Context, log string) (Head, error)
	Read(log string, after uint64) Reader
	Listed(ctx context.Context, list string, after ListedLog) iter.Seq2[ListedLog, error]
}

// ErrFenced is the error of an append by a former owner of the shard. To the process, the store is closed.
var ErrFenced = fmt.Errorf("another process owns the shard now: %w", ErrClosed)

// ShardOf returns the shard of a key, among a number of shards. The key is given in parts. All processes agree on it,
// so it must not change.
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
		h *= prime // a zero byte, in no part
	}
	return int((h ^ h>>32) % uint64(shards))
}

// HeldBy returns a function. It returns nil if the owner of a store may act outside it now, such as by a message to an
// agent. It is called right before each act, and after an append recording the act. An error means another process may
// have taken the shard over; it may pass. HeldBy returns nil if the owner always may, as with a store that is not
// shared.
func HeldBy(s Store) func() error {
	if h, ok := s.(interface{ Held() error }); ok {
		return h.Held
	}
	return nil
}

// heldPoll is the interval at which a wait for HeldBy looks.
const heldPoll = 50 * time.Millisecond

// WhenHeld returns a function to wait until HeldBy allows the owner of a store to act, or until the context is done.
// Then it returns the error of the context: the engines of a lost shard are closed. The function is nil if HeldBy's is.
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
