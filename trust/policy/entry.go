// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// entry is one quota's count under one key.
type entry struct {
	account *account
	key     string
	log     string
	shard   int
	users   atomic.Int32         // those still counting in it
	home    atomic.Pointer[home] // has the store of the state; nil if another process counts. It changes under mu

	mu      sync.Mutex
	state   state  // if another process counts: the last answer of that process, and the debt
	owed    amount // for its owner to count
	version uint64 // of starts: it is raised with each start to be stored
	dirty   bool   // state is not in the store
	used    time.Time

	writing  sync.Mutex // held while the entry is written or loaded; taken before mu
	revision uint64     // of the log
	written  uint64     // the version in the log
	left     uint64     // the version in the log when the entry last left a home
}

// state is the counts of an entry.
type state struct {
	day    int64 // of starts and bytes, since 1970
	starts int64
	kept   int64 // the store's number of starts of the day; none is begun beyond it
	bytes  int64
	calls  bucket
}

// stored is the form of a state in the store.
type stored struct {
	Day    int64     `json:"day"`
	Starts int64     `json:"starts,omitempty"`
	Bytes  int64     `json:"bytes,omitempty"`
	Level  float64   `json:"level,omitempty"` // of the bucket of calls, At
	At     time.Time `json:"at,omitzero"`
}

func decodeState(metadata []byte) (s state, err error) {
	var from stored
	if err := json.Unmarshal(metadata, &from); err != nil {
		return s, err
	}
	starts := max(0, from.Starts)
	return state{from.Day, starts, starts, max(0, from.Bytes), bucket{max(0, from.Level), from.At}}, nil
}

// day is the length of a day of UTC, in seconds.
const day = 24 * 60 * 60

func dayOf(t time.Time) int64 { return t.Unix() / day }

// roll begins a new day if there is one. A clock going back by no more than a day, for example over midnight, is still
// in the later day. A clock going back further was wrong before: the counts stay until its next midnight.
func (s *state) roll(now time.Time) {
	switch today := dayOf(now); {
	case today > s.day:
		s.day, s.starts, s.kept, s.bytes = today, 0, 0, 0
	case today < s.day-1:
		s.day, s.kept = today, 0
	}
}

// untilNextDay returns the time until the counts of a day begin anew.
func (s *state) untilNextDay(now time.Time) time.Duration {
	return time.Unix((s.day+1)*day, 0).Sub(now)
}

func (e *entry) release() { e.users.Add(-1) }

// lock locks the entry, and brings it to the present. It reports whether the entry counts here; otherwise its owner is
// to be asked, or owed.
func (e *entry) lock(now time.Time) (here bool) {
	e.mu.Lock()
	e.state.roll(now)
	return e.home.Load() != nil
}

// call counts a call, or returns a quota's refusal.
func (e *entry) call(ctx context.Context, q *Quota, now time.Time) (full *task.Error, err error) {
	limit, wait, here := e.tryCall(q, now)
	if !here && (q.Calls.N > 0 || q.Bytes > 0) {
		limit, wait, err = e.ask(ctx, &question{Calls: q.Calls, Bytes: q.Bytes})
	}
	switch {
	case err != nil || limit == "":
		return nil, err
	case limit == limitBytes:
		return exceeded(q, limit, q.Bytes, wait), nil
	}
	return exceeded(q, limit, q.Calls.Burst, wait), nil
}

// tryCall counts a call if the entry counts here. limit is the refusing limit; empty for none.
func (e *entry) tryCall(q *Quota, now time.Time) (limit string, wait time.Duration, here bool) {
	here = e.lock(now)
	defer e.mu.Unlock()
	if e.used = now; !here {
		return "", 0, false
	}
	if q.Bytes > 0 && e.state.bytes >= q.Bytes {
		return limitBytes, e.state.untilNextDay(now), true
	}
	if q.Calls.N > 0 {
		if wait, ok := e.state.calls.take(q.Calls, now); !ok {
			return limitCalls, wait, true
		}
		e.dirty = e.dirty || q.Calls.slow()
	}
	return "", 0, true
}

// uncall takes back the count of call.
func (e *entry) uncall(q *Quota) {
	if q.Calls.N == 0 {
		return
	}
	e.settle(amount{Calls: q.Calls, Uncalls: 1})
}

// settle counts an amount here, or owes it.
func (e *entry) settle(a amount) {
	if !e.add(a, e.account.book.now()) {
		e.owes(a)
	}
}

// add counts an amount if the entry counts here, and reports whether it does.
func (e *entry) add(a amount, now time.Time) (here bool) {
	here = e.lock(now)
	defer e.mu.Unlock()
	if !here {
		return false
	}
	if a.Unstarts > 0 && e.state.day == a.Day && e.state.starts > 0 {
		e.state.starts = max(0, e.state.starts-a.Unstarts)
		e.dirty = true
		select {
		case e.account.book.early <- e:
		default: // it is written with the others
		}
	}
	if a.Uncalls > 0 {
		e.state.calls.give(a.Calls, a.Uncalls)
	}
	e.state.bytes += a.Sent
	e.dirty = e.dirty || a.Sent > 0
	return true
}

// start counts a start, unless there were as many as the quota has; with most 0, it has any number. It returns the
// argument for stored, to be called before the task is started.
func (e *entry) start(
	ctx context.Context, q *Quota, most int64, now time.Time,
) (s started, full *task.Error, err error) {
	s, limit, wait, here := e.tryStart(most, now)
	if !here {
		if limit, wait, err = e.ask(ctx, &question{Start: true, Most: most}); err == nil && limit == "" {
			e.mu.Lock()
			s.day = e.state.day
			e.mu.Unlock()
		}
	}
	if err != nil || limit == "" {
		return s, nil, err
	}
	return s, exceeded(q, limit, most, wait), nil
}

// startKept counts a start on a day, if the store counts one more than there are, and the quota has one left; with most
// 0, it has any number.
func (e *entry) startKept(most int64, now time.Time) (day int64, ok bool) {
	here := e.lock(now)
	defer e.mu.Unlock()
	s := &e.state
	if !here || s.starts >= s.kept || most > 0 && s.starts >= most {
		return 0, false
	}
	s.starts++
	e.dirty = true
	return s.day, true
}

// unstartKept takes back a count of startKept on a day. The store still counts it, for the next start.
func (e *entry) unstartKept(of int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.day == of && e.state.starts > 0 {
		e.state.starts--
	}
}

// started is a counted start.
type started struct {
	home    *home // the home of its count; nil if it is stored already
	version uint64
	most    int64 // bound of the number of starts; 0 for any number
	day     int64
}

// tryStart counts a start if the entry counts here. limit is the refusing limit; empty for none.
func (e *entry) tryStart(most int64, now time.Time) (s started, limit string, wait time.Duration, here bool) {
	here = e.lock(now)
	defer e.mu.Unlock()
	if !here {
		return s, "", 0, false
	}
	if most > 0 && e.state.starts >= most {
		return s, limitStarts, e.state.untilNextDay(now), true
	}
	e.state.starts++
	e.dirty = true
	if e.state.starts <= e.state.kept {
		return started{day: e.state.day}, "", 0, true
	}
	e.version++
	return started{e.home.Load(), e.version, most, e.state.day}, "", 0, true
}

// stored returns once a counted start is stored.
func (e *entry) stored(ctx context.Context, s started) error {
	if s.home == nil {
		return nil
	}
	return e.write(ctx, s)
}

// unstart takes back a start of a day, not made after all.
func (e *entry) unstart(of int64) {
	e.settle(amount{Day: of, Unstarts: 1})
}

// startsOf returns the number of starts of a day.
func (e *entry) startsOf(day int64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.day != day {
		return 0
	}
	return e.state.starts
}

// send counts bytes, and returns an error if no more should be sent. If another process counts, the count is as of its
// last answer.
func (e *entry) send(q *Quota, n int64, now time.Time) (full *task.Error) {
	here := e.lock(now)
	e.state.bytes += n
	if e.dirty = e.dirty || here; e.state.bytes > q.Bytes {
		full = exceeded(q, limitBytes, q.Bytes, e.state.untilNextDay(now))
	}
	e.mu.Unlock()
	if !here {
		e.owes(amount{Sent: n})
	}
	return full
}

// unwritten reports whether the entry is to be written, and whether it was not used for long.
func (e *entry) unwritten(now time.Time) (dirty, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dirty, !e.dirty && e.owed == amount{} && e.users.Load() == 0 && now.Sub(e.used) > idleAfter
}

// load reads the entry from the store of its home, unless it was.
func (e *entry) load(ctx context.Context, h *home) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.home.Load() == h {
		return nil
	}
	head, err := h.store.Head(ctx, e.log)
	var s state
	switch {
	case errors.Is(err, replay.ErrNotFound):
	case errors.Is(err, replay.ErrClosed):
		return nil // it is lost, and the next owner is asked
	case err != nil:
		return unreadable(ctx, err)
	default:
		if s, err = decodeState(head.Metadata); err != nil {
			e.account.book.log.ErrorContext(ctx, "what a quota has counted cannot be read, and begins anew",
				"quota", e.account.name, "error", err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revision, e.state, e.dirty, e.written = head.Revision, s, false, e.version
	e.home.Store(h)
	return nil
}

// unreadable returns the error of a call if the store does not give the counts before it.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return task.Errorf(task.StoreUnavailable, "the gateway cannot count calls now; try again later").WithCause(err).
		WithData("reason", "STORE_UNAVAILABLE")
}

// write writes the entry if the store does not have a start. Callers waiting for each other here write once. The zero
// start has it written wherever it counts.
func (e *entry) write(ctx context.Context, s started) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	h := e.home.Load()
	switch {
	case s.home != nil && h != s.home:
		if e.left >= s.version {
			return nil
		}
		return replay.ErrFenced // it is lost with the other counts
	case h == nil, s.version > 0 && e.written >= s.version:
		return nil
	}
	return e.writeTo(ctx, h, s.most)
}

// writeTo writes the entry to the store of its home. e.writing is held. most is the most starts on a day: some are
// written ahead, to save a write for each, but none if it is 0.
func (e *entry) writeTo(ctx context.Context, h *home, most int64) error {
	for range 2 {
		written, at := e.unstored(most)
		metadata, _ := json.Marshal(written) // of numbers
		err := h.store.Append(ctx, replay.Append{Log: e.log, Expect: e.revision, Metadata: metadata})
		if err == nil {
			e.revision++
			e.written = at
			e.mu.Lock()
			if e.state.day == written.Day {
				e.state.kept = written.Starts
			}
			e.mu.Unlock()
			return nil
		}
		e.mu.Lock()
		e.dirty = true
		e.mu.Unlock()
		if !errors.Is(err, replay.ErrConflict) {
			return err
		}
		// An append not confirmed by the store was written all the same, or the entry was dropped.
		head, err := h.store.Head(ctx, e.log)
		if err != nil && !errors.Is(err, replay.ErrNotFound) {
			return err
		}
		e.revision = head.Revision
	}
	return replay.ErrConflict
}

// maxAhead is the most starts written ahead.
const maxAhead = 100

// unstored returns the state as it is to be stored, and its version.
func (e *entry) unstored(most int64) (form stored, version uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.state
	starts := max(s.starts, min(s.starts+min(most/100, maxAhead), most))
	s.kept = min(s.kept, starts) // the store may count no more from now on
	e.dirty = starts > s.starts
	return stored{s.day, starts, s.bytes, s.calls.level, s.calls.at}, e.version
}
