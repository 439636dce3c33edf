// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aip-gateway/aip-gateway/replay"
)

// unavailableErr returns the error of calls while the stream cannot be written.
func (s *Store) unavailableErr() error {
	return fmt.Errorf("the stream %s: %w", s.st.name, replay.ErrUnavailable)
}

// suspend answers what is being written, and all that is queued, with ErrUnavailable: the store takes too long to
// find out what becomes of it.
func (s *Store) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return
	}
	s.st.config.Log.Warn("appends take too long; the store is unavailable until it is known what becomes of them",
		"stream", s.st.name)
	s.unavailable = true
	var left []*op
	for _, o := range s.queue {
		if o.a == nil {
			left = append(left, o)
		}
	}
	err := s.unavailableErr()
	for _, o := range slices.Concat(s.pending, s.queue) {
		if o.a != nil {
			o.answer(err)
		}
	}
	s.queue = left
}

// available says that the stream can be written.
func (s *Store) available() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		s.unavailable = false
		close(s.reopened)
		s.reopened = make(chan struct{})
	}
}

// failedRead takes note of a read that has failed.
func (s *Store) failedRead(err error) error {
	if errors.Is(err, replay.ErrUnavailable) {
		s.mu.Lock()
		s.unavailable = true
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
