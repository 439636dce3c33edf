// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// openStore has the heads of all logs, from the standby of the shard if there is one, and returns their store.
func openStore(ctx context.Context, st *stream, owner Owner) (*Store, error) {
	by := st.takeStandby()
	s, err := by.open(ctx, owner)
	if err != nil {
		st.giveBack(by)
		return nil, fmt.Errorf("the logs of the shard %d cannot be read: %w", st.shard, err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.work.Add(2 + purgers)
	go s.run()
	go s.expire()
	if by.begun { // it has not read all heads since the claim
		s.work.Add(1)
		go s.tidy()
	}
	for range purgers {
		go s.clean()
	}
	st.entered(s)
	st.mu.Lock()
	st.opening = false
	st.mu.Unlock()
	return s, nil
}

// open returns the store of the shard, claimed by owner. It has no goroutines yet.
func (b *standby) open(ctx context.Context, owner Owner) (*Store, error) {
	// The record of the owner is the last message: the former owner writes nothing after it.
	s := &Store{st: b.st, owner: owner, last: owner.Epoch, kick: make(chan struct{}, 1), purge: make(chan struct{}, 1),
		index: b.index, fenced: make(chan struct{}), reopened: make(chan struct{})}
	var err error
	if s.recent, err = simplelru.NewLRU[string, []byte](recentLogs, nil); err != nil {
		return nil, err
	}
	if err := b.readOn(ctx, owner.Epoch); err != nil {
		return nil, err
	}
	if err := b.verify(ctx); err != nil {
		return nil, err
	}
	if !b.exact {
		if err := b.compare(ctx, owner.Epoch); err != nil {
			return nil, err
		}
	}
	for name, seq := range b.dropped {
		s.dropped(name, seq)
	}
	return s, nil
}

// heads calls each for the heads after a message and before another one, in the order of the stream. Any replica
// answers, and one may lag, so the leader is asked at the end whether a head is left.
func (st *stream) heads(ctx context.Context, after, before uint64, each func(message) error) error {
	for at := after; ; {
		found, err := st.nextHeads(ctx, at)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, m := range found {
			if at = m.seq; at > before {
				return nil
			}
			if err := each(m); err != nil {
				return err
			}
		}
	}
}

// nextHeads returns the next heads after a message, some of them; none if there are none.
func (st *stream) nextHeads(ctx context.Context, after uint64) ([]message, error) {
	filter := st.prefix + "*.h"
	found, err := st.direct(ctx, after+1, filter, pageMessages, pageBytes)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err == nil && len(found) > 0 {
		return found, nil
	}
	m, err := st.get(ctx, getRequest{Seq: after + 1, Next: filter})
	if errors.Is(err, errNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []message{m}, nil
}
