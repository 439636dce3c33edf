// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// question is a process's question to the owner of an entry's shard: whether it counts one more call or start, or the
// order to count a debt. The limits are those of the asking process.
type question struct {
	Quota string
	Key   string

	Calls Rate  `json:",omitzero"` // of a call
	Bytes int64 `json:",omitempty"`
	Start bool  `json:",omitempty"` // else it is a call
	Most  int64 `json:",omitempty"` // starts

	Owed []owed `json:",omitempty"` // of several entries; then nothing else counts
}

// owed is the debt of one entry.
type owed struct {
	Quota, Key string
	amount
}

// amount is used, or given back, away from the process counting the entry.
type amount struct {
	Sent     int64 `json:",omitempty"` // bytes
	Day      int64 `json:",omitempty"` // of starts not made after all
	Unstarts int64 `json:",omitempty"`
	Calls    Rate  `json:",omitzero"` // of refused calls
	Uncalls  int   `json:",omitempty"`
}

// counted is the answer of an owner, for each entry counted by it.
type counted struct {
	Limit string        `json:",omitempty"` // the refusing limit; empty for none
	Wait  time.Duration `json:",omitempty"` // until it may be tried again

	Day    int64 // of the counts below
	Starts int64
	Bytes  int64
}

var errNotAnswered = errors.New("the owner of the quota has not answered what was asked")

// ask asks the owner of the entry. limit is the refusing limit; empty for none.
func (e *entry) ask(ctx context.Context, q *question) (limit string, wait time.Duration, err error) {
	q.Quota, q.Key = e.account.name, e.key
	all, err := e.account.book.owners.Of(ctx, e.shard, *q)
	if err == nil && len(all) != 1 {
		err = errNotAnswered
	}
	if _, known := errors.AsType[*task.Error](err); known {
		return "", 0, err
	} else if err != nil {
		return "", 0, unreadable(ctx, err)
	}
	e.adopt(&all[0])
	return all[0].Limit, all[0].Wait, nil
}

// adopt takes over the owner's counts.
func (e *entry) adopt(c *counted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.home.Load() == nil {
		e.state.day, e.state.starts, e.state.bytes = c.Day, c.Starts, c.Bytes+e.owed.Sent
	}
}

// answer answers the question of a process, or of this one. Of several entries it may count only the first ones.
func (b *Book) answer(ctx context.Context, shard int, q question) (all []counted, err error) {
	if q.Owed == nil {
		c, err := b.count(ctx, shard, &q)
		return []counted{c}, err
	}
	for i := range q.Owed {
		o := &q.Owed[i]
		c, err := b.here(ctx, shard, o.Quota, o.Key, func(e *entry, now time.Time) (counts bool, _ error) {
			return e.add(o.amount, now), nil
		})
		if err != nil && i > 0 {
			return all, nil // the question must not be asked again, since a part of it is counted
		} else if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// here calls f with an entry counting here, and returns its counts. The error is a replay.ErrFenced if another process
// owns the shard, or f reports its loss.
func (b *Book) here(
	ctx context.Context, shard int, quota, key string, f func(e *entry, now time.Time) (counts bool, err error),
) (c counted, err error) {
	if h := b.homes.Of(shard); h == nil || replay.ShardOf(b.set.Count(), quota, key) != shard {
		return c, replay.ErrFenced
	}
	e, err := b.account(quota).entry(ctx, key)
	if err != nil {
		return c, err
	}
	defer e.release()
	now := b.now()
	counts, err := f(e, now)
	if err == nil && !counts {
		err = replay.ErrFenced
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.roll(now)
	e.used = now
	return counted{Day: e.state.day, Starts: e.state.starts, Bytes: e.state.bytes}, err
}

// count counts a call or a start.
func (b *Book) count(ctx context.Context, shard int, q *question) (counted, error) {
	var limit string
	var wait time.Duration
	c, err := b.here(ctx, shard, q.Quota, q.Key, func(e *entry, now time.Time) (counts bool, err error) {
		if !q.Start {
			limit, wait, counts = e.tryCall(&Quota{Calls: q.Calls, Bytes: q.Bytes}, now)
			return counts, nil
		}
		var s started
		if s, limit, wait, counts = e.tryStart(q.Most, now); counts && limit == "" {
			if err = e.stored(ctx, s); err != nil {
				e.add(amount{Day: s.day, Unstarts: 1}, now)
			}
		}
		return counts, err
	})
	c.Limit, c.Wait = limit, wait
	return c, err
}
