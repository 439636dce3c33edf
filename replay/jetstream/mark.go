// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// purgeAfter is the time from the drop of a log to its purge, so that the standbys of other processes read its empty
// head before. It is longer than a deposed leader lives, and standbyFloor.
const purgeAfter = 40 * time.Second

// marks returns the sequence after which all owners mark what they purge, 0 if the present one does not, and the mark.
func (st *stream) marks(ctx context.Context) (marked, mark uint64, err error) {
	_, owner, err := st.readOwner(ctx)
	if err != nil {
		return 0, 0, err
	}
	mark, err = st.mark(ctx)
	return owner.Marked, mark, err
}

// mark returns the greatest sequence of an empty head that may have been purged; 0 for none.
func (st *stream) mark(ctx context.Context) (uint64, error) {
	m, err := st.last(ctx, st.markSubject)
	if errors.Is(err, errNoMessage) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	upTo, err := strconv.ParseUint(string(m.data), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the mark of the stream %s: %w", st.name, errDamaged)
	}
	return upTo, nil
}

// markValue returns the message that marks the empty heads up to a sequence.
func (st *stream) markValue(upTo uint64) value {
	return value{subject: st.markSubject, parts: [][]byte{strconv.AppendUint(nil, upTo, 10)}}
}

// drop is a dropped log whose purge has to wait.
type drop struct {
	purge
	since time.Time
}

// dropped has a log purged later, after its drop by the empty head with a sequence. s.mu is held, or s is not open yet.
func (s *Store) dropped(log string, seq uint64) {
	if len(s.purges.subjects)+len(s.drops) >= s.st.config.maxPurges {
		s.st.unpurged.Add(1)
		return
	}
	s.drops = append(s.drops, drop{purge{s.st.prefix + token(log) + ".>", seq + 1}, time.Now()})
}

// markDropped has the dropped logs marked after their time. A mark is not before the record of this owner, so it is not
// before those of former owners. s.mu is held.
func (s *Store) markDropped() {
	upTo := uint64(0)
	for i := range s.drops {
		if time.Since(s.drops[i].since) < s.st.config.purgeAfter {
			break
		}
		upTo = max(upTo, s.drops[i].before-1, s.owner.Epoch)
	}
	switch {
	case upTo > s.marking:
		s.marking = upTo
		s.queue = append(s.queue, &op{marks: upTo, done: make(chan struct{})})
		signal(s.kick)
	case upTo > 0 && upTo <= s.written:
		s.marked(upTo)
	}
}

// marked has the logs purged that were dropped by the empty heads up to a sequence, as is marked. s.mu is held.
func (s *Store) marked(upTo uint64) {
	s.written = max(s.written, upTo)
	rest := s.drops[:0:0]
	for _, d := range s.drops {
		if d.before-1 <= upTo {
			s.later(d.purge)
		} else {
			rest = append(rest, d)
		}
	}
	s.drops = rest
}

// tidy looks for dropped logs left in the stream by former owners, which a standby may not know, when the take-over is
// long over.
func (s *Store) tidy() {
	defer s.work.Done()
	for pause(s.ctx, s.st.config.purgeAfter) == nil {
		if s.tidyOnce() == nil {
			return
		}
	}
}

func (s *Store) tidyOnce() error {
	for offset := 0; ; {
		subjects, all, err := s.st.subjects(s.ctx, s.st.prefix+"*.h", offset, s.owner.Epoch)
		if err != nil {
			return err
		}
		for subject := range subjects {
			name, _, err := logOf(s.st.prefix, subject)
			if err != nil {
				return err
			}
			s.mu.Lock()
			_, known := s.index.Value(name)
			s.mu.Unlock()
			if known {
				continue
			}
			m, err := s.st.last(s.ctx, subject)
			if err != nil && !errors.Is(err, errNoMessage) {
				return err
			}
			if err == nil && len(m.data) == 0 && m.seq < s.owner.Epoch {
				s.mu.Lock()
				s.dropped(name, m.seq)
				s.mu.Unlock()
			}
		}
		if offset += len(subjects); len(subjects) == 0 || offset >= all {
			return nil
		}
	}
}
