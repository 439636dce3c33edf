// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"math"

	"github.com/aip-gateway/aip-gateway/replay"
)

// purge names the messages to be purged.
type purge struct {
	subject string
	before  uint64
}

const (
	// maxPurges bounds the purges waiting in a stream, by subjects.
	maxPurges = 1 << 16
	// purgers is the number of purges of a stream under way at once.
	purgers = 4
)

// purges wait to be made, in order. One at a subject includes those before it.
type purges struct {
	subjects []string
	before   map[string]uint64 // by subject
}

// add adds a purge, unless there are as many as there may be.
func (q *purges) add(p purge, most int) bool {
	before, waits := q.before[p.subject]
	if !waits {
		if len(q.subjects) >= most {
			return false
		}
		q.subjects = append(q.subjects, p.subject)
	}
	if q.before == nil {
		q.before = make(map[string]uint64)
	}
	q.before[p.subject] = max(before, p.before)
	return true
}

// next takes the first purge; it reports false if there is none.
func (q *purges) next() (p purge, ok bool) {
	if len(q.subjects) == 0 {
		*q = purges{}
		return p, false
	}
	p.subject, q.subjects = q.subjects[0], q.subjects[1:]
	p.before = q.before[p.subject]
	delete(q.before, p.subject)
	return p, true
}

// trim is the part dropped by an append.
type trim struct {
	revision uint64 // of the log when looked up
	kept     int64  // bytes of the kept records, without those of the append
	before   uint64 // no message before this sequence has kept records; 0 if only those of the append are kept
}

// trimmed looks up the part dropped by an append.
func (s *Store) trimmed(ctx context.Context, a *replay.Append) (t trim, err error) {
	h, err := s.headOf(ctx, a.Log)
	if err != nil && !errors.Is(err, replay.ErrNotFound) {
		return t, err
	}
	if t.revision = h.Revision; a.Expect != h.Revision || a.Trim < h.First || a.Trim >= h.Last {
		return t, nil
	}
	limited, done, err := s.reading(ctx)
	if err != nil {
		return t, err
	}
	defer done()
	at := cursor{}
	for after := a.Trim; after < h.Last; {
		records, err := s.st.page(limited, a.Log, &h, after, &at, math.MaxInt64)
		if err != nil {
			if errors.Is(err, errHole) {
				return t, replay.ErrConflict
			}
			return t, s.failedRead(ctx, err)
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

// later has something purged. If p does not fit any more, the messages are left: trimmed ones until the log is trimmed
// again, or dropped, and a dropped log until the shard's next owner finds its empty head. s.mu is held.
func (s *Store) later(p purge) {
	if !s.purges.add(p, s.st.config.maxPurges) {
		s.st.unpurged.Add(1)
		return
	}
	signal(s.purge)
}

// mayDrop reports whether another expired log may be dropped: if too much waits to be purged, it is kept for longer.
// s.mu is held.
func (s *Store) mayDrop() bool {
	return len(s.queue)+len(s.purges.subjects)+len(s.drops) < s.st.config.maxPurges
}

// clean purges dropped messages, beside other goroutines doing the same.
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
			p, ok := s.purges.next()
			s.mu.Unlock()
			if !ok {
				break
			}
			signal(s.purge) // another one helps
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
