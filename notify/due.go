// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// target is a due delivery.
type target struct {
	record uint64
	dead   bool // a dead letter to be delivered again
}

// due returns the delivery of a webhook to attempt now, for the earliest event.
func (m *metadata) due(h *hook, now time.Time) (target, bool) {
	if h.Disabled != "" {
		return target{}, false
	}
	for i := range h.Dead { // oldest record first, and all of them are behind the cursor
		if l := &h.Dead[i]; !l.Next.IsZero() && !l.Next.After(now) {
			return target{record: l.Record, dead: true}, true
		}
	}
	if m.pending(h) && !h.Next.After(now) {
		return target{record: h.Cursor + 1}, true
	}
	return target{}, false
}

// dead returns the index of the dead letter of a record, or -1.
func (h *hook) dead(record uint64) int {
	for i := range h.Dead {
		if h.Dead[i].Record == record {
			return i
		}
	}
	return -1
}

// die makes the head, or a dead letter delivered again, a dead letter.
func (m *metadata) die(h *hook, t target, l deadLetter) {
	l.Record = t.record
	if t.dead {
		if i := h.dead(t.record); i >= 0 {
			h.Dead[i] = l
		}
		return
	}
	h.Dead = append(h.Dead, l)
	h.Cursor++
	h.reset()
}

// postpone moves the due deliveries of a webhook to another time.
func (m *metadata) postpone(h *hook, now, to time.Time) {
	for i := range h.Dead {
		if l := &h.Dead[i]; !l.Next.IsZero() && !l.Next.After(now) {
			l.Next = to
		}
	}
	if m.pending(h) && !h.Next.After(now) {
		h.Next = to
	}
}

// next is when something of a webhook is due; zero for never.
func (m *metadata) next(h *hook) (at time.Time) {
	if h.Disabled != "" {
		return at
	}
	if m.pending(h) {
		at = h.Next
	}
	for i := range h.Dead {
		at = earlier(at, h.Dead[i].Next)
	}
	return at
}

// earlier returns the earlier of two times. The zero time stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// dueAt returns when the outbox must be looked at again, and whether it ends then.
func (m *metadata) dueAt() (at time.Time, ends bool) {
	for i := range m.Hooks {
		at = earlier(at, m.next(&m.Hooks[i]))
	}
	if !at.IsZero() {
		return at, false
	}
	var drop, latest time.Time // when the first and the last of the things kept for some time are dropped
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if h.Disabled != "" && m.pending(h) {
			t := h.DisabledAt.Add(keepDead)
			drop, latest = earlier(drop, t), later(latest, t)
		}
		for j := range h.Dead {
			t := h.Dead[j].At.Add(keepDead)
			drop, latest = earlier(drop, t), later(latest, t)
		}
	}
	switch {
	case !m.Ended.IsZero():
		return later(latest, m.Ended.Add(keepEnded)), true
	case !drop.IsZero():
		return drop, false
	case m.Seen == 0:
		return m.Created.Add(keepEmpty), true
	}
	return replay.Recover, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// awaits reports whether a delivery has neither been made nor become dead since it was due.
func (m *metadata) awaits(h *hook, t target) bool {
	if t.dead {
		i := h.dead(t.record)
		return i >= 0 && !h.Dead[i].Next.IsZero()
	}
	return h.Cursor+1 == t.record && m.pending(h)
}
