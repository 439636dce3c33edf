// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/replay"
)

// purge says what is to be purged.
type purge struct {
	subject string
	before  uint64
}

// trim is what an append drops.
type trim struct {
	revision uint64 // of the log when it was looked up
	kept     int64  // bytes of the records that are kept, without those of the append
	before   uint64 // sequence before which no message has records that are kept; 0 if those of the append alone are kept
}

// trimmed looks up what an append drops.
func (s *Store) trimmed(ctx context.Context, a *replay.Append) (t trim, err error) {
	h, err := s.headOf(ctx, a.Log)
	if err != nil && !errors.Is(err, replay.ErrNotFound) {
		return t, err
	}
	if t.revision = h.Revision; a.Expect != h.Revision || a.Trim < h.First || a.Trim >= h.Last {
		return t, nil
	}
	at := cursor{}
	for after := a.Trim; after < h.Last; {
		records, err := s.st.page(ctx, a.Log, &h, after, &at)
		if err != nil {
			if errors.Is(err, errHole) {
				return t, replay.ErrConflict
			}
			return t, s.failedRead(err)
		}
		if t.before == 0 {
			t.before = at.first
		}
		for _, r := range records {
			t.kept += int64(len(r.Data))
			after = r.Seq
		}
	}
	return t, nil
}

// later has something purged. s.mu is held.
func (s *Store) later(p purge) {
	s.purges = append(s.purges, p)
	signal(s.purge)
}

// clean purges what was dropped.
func (s *Store) clean() {
	defer s.work.Done()
	for {
		select {
		case <-s.purge:
		case <-s.ctx.Done():
			return
		}
		for s.ctx.Err() == nil {
			s.mu.Lock()
			if len(s.purges) == 0 {
				s.mu.Unlock()
				break
			}
			p := s.purges[0]
			s.purges = s.purges[1:]
			s.mu.Unlock()
			if err := s.st.purge(s.ctx, p.subject, p.before); err != nil && s.ctx.Err() == nil {
				if !errors.Is(err, replay.ErrUnavailable) {
					s.st.config.Log.Error("what was dropped cannot be purged", "stream", s.st.name, "error", err)
					continue
				}
				s.mu.Lock()
				s.later(p)
				s.mu.Unlock()
			}
		}
	}
}
