// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/aip-gateway/aip-gateway/replay"
)

// openStore reads the heads of all logs, and returns their store.
func openStore(ctx context.Context, st *stream, owner Owner) (*Store, error) {
	// The record of the owner is the last message: the former owner writes nothing after it.
	s := &Store{st: st, owner: owner, last: owner.Epoch, kick: make(chan struct{}, 1), purge: make(chan struct{}, 1),
		index: replay.NewIndex[entry](st.config.Settings, awake), fenced: make(chan struct{}), reopened: make(chan struct{})}
	var err error
	if s.recent, err = simplelru.NewLRU[string, []byte](recentLogs, nil); err != nil {
		return nil, err
	}
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("the logs of the shard %d cannot be read: %w", st.shard, err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.work.Add(2 + purgers)
	go s.run()
	go s.expire()
	for range purgers {
		go s.clean()
	}
	st.entered(s)
	return s, nil
}

// load reads all heads, and asks the leader for the logs there are: a replica may still have a head of a dropped and
// purged log.
func (s *Store) load(ctx context.Context) error {
	err := s.st.heads(ctx, 0, math.MaxUint64, func(m message) error { return s.loadHead(ctx, m) })
	if err != nil {
		return err
	}
	return s.compare(ctx)
}

// heads calls each for the heads after a message and before another one, in the order of the stream. Any replica
// answers, and one may lag, so the leader is asked at the end whether a head is left.
func (st *stream) heads(ctx context.Context, after, before uint64, each func(message) error) error {
	filter := st.prefix + "*.h"
	for at := after; ; {
		found, err := st.direct(ctx, at+1, filter, pageMessages)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || len(found) == 0 {
			m, err := st.get(ctx, getRequest{Seq: at + 1, Next: filter})
			if errors.Is(err, errNoMessage) {
				return nil
			}
			if err != nil {
				return err
			}
			found = append(found, m)
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

// loadHead takes a head into the index.
func (s *Store) loadHead(ctx context.Context, m message) error {
	name, _, err := logOf(s.st.prefix, m.subject)
	if err != nil {
		return err
	}
	if len(m.data) == 0 { // a dropped log; its purge may have been missed
		s.later(purge{s.st.prefix + token(name) + ".>", m.seq + 1})
		s.unload(name)
		return nil
	}
	data, err := s.st.whole(ctx, m)
	if errors.Is(err, errNoMessage) { // it was replaced, and its replacement comes later
		s.unload(name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("the log %.100q: %w", name, err)
	}
	h, err := parseHead(data)
	if err != nil {
		return fmt.Errorf("the log %.100q: %w", name, err)
	}
	l := s.index.Get(name)
	if l == nil {
		l = &indexed{Name: name}
	}
	l.Value = entry{begun: h.begun, seq: m.seq, snapshot: h.snapshot, inline: h.inline.first}
	s.index.Set(l, h.Head, sizeOf(name, &h), h.expires)
	return nil
}

// unload takes a log out of the index, if it is there.
func (s *Store) unload(name string) {
	if l := s.index.Get(name); l != nil {
		s.index.Remove(l)
	}
}

// compare takes logs missing at the leader out of the index.
func (s *Store) compare(ctx context.Context) error {
	filter := s.st.prefix + "*.h"
	there := make(map[string]bool)
	for {
		subjects, all, err := s.st.subjects(ctx, filter, len(there))
		if err != nil {
			return err
		}
		for subject := range subjects {
			there[subject] = true
		}
		if len(subjects) == 0 || len(there) >= all {
			break
		}
	}
	noLock := func(context.Context) error { return nil } // the store is not open yet
	for e, err := range s.index.Entries(ctx, noLock, func() {}, "", "") {
		if err != nil {
			return err
		}
		if !there[s.st.headSubject(e.Log)] {
			s.unload(e.Log)
		}
	}
	return nil
}
