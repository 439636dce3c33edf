// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/replay"
)

// openStore reads the heads of all logs, and returns their store.
func openStore(ctx context.Context, st *stream, owner Owner) (*Store, error) {
	s := &Store{st: st, owner: owner, kick: make(chan struct{}, 1), purge: make(chan struct{}, 1),
		index: replay.NewIndex[entry](st.config.Settings), fenced: make(chan struct{}), reopened: make(chan struct{})}
	m, err := st.last(ctx, st.batchSubject)
	if err != nil && !errors.Is(err, errNoMessage) {
		return nil, err
	}
	s.last = m.seq
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("the logs of the shard %d cannot be read: %w", st.shard, err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.work.Add(3)
	go s.run()
	go s.clean()
	go s.expire()
	st.mu.Lock()
	st.local = s
	st.mu.Unlock()
	signal(s.purge)
	return s, nil
}

// load reads all heads. The consumer may be at a replica that lags, so it has read all when it has read the owner's
// record, which is younger than they are.
func (s *Store) load(ctx context.Context) error {
	once, stop := context.WithTimeout(ctx, requestLimit)
	c, err := s.st.js.OrderedConsumer(once, s.st.name, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.st.prefix + "*.h", s.st.ownerSubject},
	})
	stop()
	if err != nil {
		return unavailable(ctx, err)
	}
	// A pull that the server has lost is asked for again soon: by default, that takes 10 s and more.
	all, err := c.Messages(jetstream.PullExpiry(time.Second), jetstream.PullHeartbeat(500*time.Millisecond))
	if err != nil {
		return unavailable(ctx, err)
	}
	defer all.Stop()
	for {
		m, err := all.Next(jetstream.NextContext(ctx))
		if err != nil {
			return unavailable(ctx, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		seq := meta.Sequence.Stream
		if seq == s.owner.Epoch {
			return nil
		}
		if m.Subject() == s.st.ownerSubject {
			continue
		}
		name, _, err := logOf(s.st.prefix, m.Subject())
		if err != nil {
			return err
		}
		if len(m.Data()) == 0 { // a log that was dropped, whose purge may have been missed
			s.purges = append(s.purges, purge{s.st.prefix + token(name) + ".>", seq + 1})
			continue
		}
		data, err := s.st.whole(ctx, message{m.Subject(), seq, m.Data()})
		if err != nil {
			return fmt.Errorf("the log %.100q: %w", name, err)
		}
		h, err := parseHead(data)
		if err != nil {
			return fmt.Errorf("the log %.100q: %w", name, err)
		}
		l := &indexed{Name: name, Expires: h.expires, Value: entry{begun: h.begun, seq: seq, snapshot: h.snapshot}}
		s.index.Set(l, h.Head, sizeOf(name, &h))
	}
}

// unavailable returns an error of the client's as one of the store's, or that of ctx.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", replay.ErrUnavailable, err)
}
