// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"
	"hash/maphash"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	farAway = 15 * time.Second      // when the keeper looks again though nothing is due; what lies beyond need not be read
	margin  = time.Minute           // how far back it looks when nothing was left
	breath  = 50 * time.Millisecond // between two looks, at least
)

var afterRestart = replay.Recover.Add(1)

// keep brings what is due from the store into memory, until the engine closes. It looks no more than a tenth of
// the time: what is added while there is room needs no look.
func (e *Engine) keep() {
	from := afterRestart
	for {
		stepped, ok := e.alarm.Wait(e.base.Done())
		if !ok {
			return
		}
		if stepped {
			from = afterRestart
		}
		began := time.Now()
		s := &e.sched
		s.mu.Lock()
		from = earlier(from, s.leftAt)
		s.leftAt = replay.EndOfTime
		s.mu.Unlock()

		e.scan(from, began)

		s.mu.Lock()
		from = earlier(began.Add(-margin), s.leftAt)
		if s.leftAt.Equal(replay.EndOfTime) {
			clear(s.leftOf)
		}
		s.mu.Unlock()
		if !e.sleep(max(9*time.Since(began), breath)) {
			return
		}
	}
}

// scan looks at all outboxes whose time lies between from and now.
func (e *Engine) scan(from, now time.Time) {
	e.alarm.Begin()
	next := now.Add(farAway)
	for w, err := range e.store.Due(e.base, logname.Outbox, from, next) {
		if err == nil && w.At.After(now) {
			next = w.At
			break
		}
		looked := err == nil
		if looked {
			err = e.visit(w, now)
		}
		if err == nil || e.base.Err() != nil {
			continue
		}
		e.loggerOf(err).Error("an outbox cannot be looked at; trying again", "error", err)
		if looked && !errors.Is(err, replay.ErrUnavailable) {
			e.sched.suffer(w.Log, now) // and holds up no other one
			continue
		}
		e.leave(w.At)
		next = now.Add(soon)
		break
	}
	e.alarm.End(next)
}

// leave says that an outbox that is due at a time was not seen to.
func (e *Engine) leave(at time.Time) {
	e.sched.mu.Lock()
	defer e.sched.mu.Unlock()
	if at.IsZero() {
		at = afterRestart
	}
	e.sched.leftAt = earlier(e.sched.leftAt, at)
}

// visit sees to an outbox that is due.
func (e *Engine) visit(w replay.DueLog, now time.Time) error {
	s := &e.sched
	hash := maphash.String(e.seed, w.Log)
	s.mu.Lock()
	if len(s.jobs[w.Log]) > 0 {
		s.mu.Unlock()
		return nil // whoever ends that delivery sees to the others
	}
	if until, sore := s.sore[w.Log]; sore && until.After(now) {
		s.leftAt = earlier(s.leftAt, w.At)
		s.engine.alarm.At(until)
		s.mu.Unlock()
		return nil
	}
	if by, left := s.leftOf[hash]; left {
		if !by.gone(now) {
			if by.endpoint != nil {
				by.endpoint.skipped = true
			}
			s.leftAt = earlier(s.leftAt, w.At)
			s.mu.Unlock()
			return nil
		}
		delete(s.leftOf, hash)
	}
	s.mu.Unlock()
	return e.look(w.Log)
}

// look lets what is due in an outbox have its turn, puts off what may not be delivered now, and drops what has
// been kept for long enough.
func (e *Engine) look(name string) error {
	b := e.acquire(name)
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(e.base); err != nil || !b.exists {
		return err
	}
	now := time.Now()
	wake, goes := b.note.wake()
	if wake.After(now) {
		e.alarm.At(wake)
		return nil
	}
	if wake.Equal(replay.Recover) {
		return nil
	}
	if goes && b.note.Seen == 0 && b.note.Ended.IsZero() {
		// The task may have come after all, and its first event not have been told.
		if err := b.catchUp(e.base); err != nil {
			return err
		}
		if wake, goes = b.note.wake(); wake.After(now) || wake.Equal(replay.Recover) {
			return nil // what was missing has been written, and has its turn
		}
	}
	if goes && !wake.After(now) {
		return b.end(e.base)
	}
	rewrite := true // something is kept for too long, unless something is to be delivered
	for i := range b.note.Configs {
		c := &b.note.Configs[i]
		if _, due := b.note.due(c, now); due {
			if rewrite = !e.sched.gate(b.name, endpointOf(c.Webhook.URL), now).IsZero(); rewrite {
				break
			}
		}
	}
	if rewrite {
		return b.write(e.base, now, nil, false)
	}
	b.admit(now)
	return nil
}

// readmit sees to outboxes whose deliveries were taken out of memory.
func (e *Engine) readmit(drained []job) {
	for _, j := range drained {
		if err := e.look(j.outbox); err != nil && e.base.Err() == nil {
			e.loggerOf(err).Error("a delivery cannot be put off", "error", err)
			e.leave(afterRestart)
			e.alarm.At(time.Now().Add(soon))
		}
	}
}
