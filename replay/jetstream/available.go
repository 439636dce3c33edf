// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// unavailable returns the error of calls while the stream cannot be written, or does not answer.
func (st *stream) unavailable() error {
	return fmt.Errorf("the stream %s: %w", st.name, replay.ErrUnavailable)
}

// suspend answers the ops being written, and all queued ones, with ErrUnavailable: the store takes too long to find out
// their outcome.
func (s *Store) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return
	}
	// What to do: see docs/cluster.md#when-something-is-wrong.
	s.st.config.Log.Warn("appends take too long; the store is unavailable until it is known what becomes of them",
		"stream", s.st.name)
	s.unavailable = true
	var left []*op
	for _, o := range s.queue {
		if o.a == nil {
			left = append(left, o)
		}
	}
	err := s.st.unavailable()
	for _, o := range slices.Concat(s.pending, s.queue) {
		if o.a != nil {
			o.answer(err)
		}
	}
	s.queue = left
}

// available marks the stream as writable.
func (s *Store) available() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		s.unavailable, s.unread = false, time.Time{}
		close(s.reopened)
		s.reopened = make(chan struct{})
	}
}

// soon is the longest time for a read while the store is unavailable.
const soon = time.Second

// reading returns the context of a read, for a caller others may wait for, as for an append. After an append or a read
// was given up, it does not take as long once more. Any replica may have the message, so the read is tried all the
// same, but not by each waiting caller.
func (s *Store) reading(ctx context.Context) (context.Context, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.unavailable:
		return ctx, func() {}, nil
	case time.Since(s.unread) < s.st.config.GiveUp:
		return nil, nil, s.st.unavailable()
	}
	ctx, cancel := context.WithTimeout(ctx, soon)
	return ctx, cancel, nil
}

// failedRead takes note of a failed read. ctx is its caller's.
func (s *Store) failedRead(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = s.st.unavailable()
	}
	if errors.Is(err, replay.ErrUnavailable) {
		s.mu.Lock()
		s.unavailable, s.unread = true, time.Now()
		s.mu.Unlock()
		signal(s.kick)
	}
	return err
}

// probe waits until the stream answers.
func (s *Store) probe() {
	for s.ctx.Err() == nil {
		if _, err := s.st.owner(s.ctx); err == nil {
			s.available()
			return
		}
		_ = pause(s.ctx, retryPause) // the loop looks
	}
}

// Reopened implements replay.Store.
func (s *Store) Reopened() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopened
}

// Writable implements replay.Store.
func (s *Store) Writable() error {
	if err := s.enterToWrite(context.Background()); err != nil {
		return err
	}
	s.mu.Unlock()
	return nil
}
