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

// entry is what one quota has counted under one key.
type entry struct {
	account *account
	key     string
	log     string
	users   atomic.Int32 // who may still count in it
	loaded  atomic.Bool

	mu      sync.Mutex
	state   state
	version uint64 // of starts: it is raised with each
	dirty   bool   // state is not in the store
	used    time.Time

	writing  sync.Mutex // held while the entry is written or loaded; taken before mu
	revision uint64     // of the log
	written  uint64     // the version that the log has
}

// state is what was counted.
type state struct {
	day    int64 // of starts and bytes, since 1970
	starts int64
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
	return state{from.Day, max(0, from.Starts), max(0, from.Bytes), bucket{max(0, from.Level), from.At}}, nil
}

// day is the length of a day of UTC, in seconds.
const day = 24 * 60 * 60

func dayOf(t time.Time) int64 { return t.Unix() / day }

// roll begins a new day if there is one. A clock that goes back by no more than a day, for example over midnight, is
// still in the later day. One that goes back further was wrong before: what is counted stays so until its next
// midnight.
func (s *state) roll(now time.Time) {
	switch today := dayOf(now); {
	case today > s.day:
		s.day, s.starts, s.bytes = today, 0, 0
	case today < s.day-1:
		s.day = today
	}
}

// untilNextDay returns the time until what is counted on a day begins anew.
func (s *state) untilNextDay(now time.Time) time.Duration {
	return time.Unix((s.day+1)*day, 0).Sub(now)
}

func (e *entry) release() { e.users.Add(-1) }

// lock locks the entry, and brings it to the present.
func (e *entry) lock(now time.Time) {
	e.mu.Lock()
	e.state.roll(now)
}

// call counts a call, or returns why a quota refuses it.
func (e *entry) call(q *Quota, now time.Time) *task.Error {
	e.lock(now)
	defer e.mu.Unlock()
	e.used = now
	if q.Bytes > 0 && e.state.bytes >= q.Bytes {
		return exceeded(q, limitBytes, q.Bytes, e.state.untilNextDay(now))
	}
	if q.Calls.N > 0 {
		if wait, ok := e.state.calls.take(q.Calls, now); !ok {
			return exceeded(q, limitCalls, q.Calls.Burst, wait)
		}
		e.dirty = e.dirty || q.Calls.slow()
	}
	return nil
}

// uncall takes back what call has counted.
func (e *entry) uncall(q *Quota) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q.Calls.N > 0 {
		e.state.calls.give(q.Calls)
	}
}

// start counts a start, unless there were as many as a quota has, which max 0 does not say. It returns what write is to
// be called with before the task is started, and the day of the start.
func (e *entry) start(q *Quota, most int64, now time.Time) (version uint64, of int64, full *task.Error) {
	e.lock(now)
	defer e.mu.Unlock()
	if most > 0 && e.state.starts >= most {
		return 0, 0, exceeded(q, limitStarts, most, e.state.untilNextDay(now))
	}
	e.state.starts++
	e.version++
	e.dirty = true
	return e.version, e.state.day, nil
}

// unstart takes back a start of a day that was none.
func (e *entry) unstart(of int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.day == of && e.state.starts > 0 {
		e.state.starts--
		e.dirty = true
		select {
		case e.account.book.early <- e:
		default: // it is written with the others
		}
	}
}

// startsOf returns how many starts are counted of a day.
func (e *entry) startsOf(day int64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.day != day {
		return 0
	}
	return e.state.starts
}

// send counts bytes, and returns why no more should be sent.
func (e *entry) send(q *Quota, n int64, now time.Time) *task.Error {
	e.lock(now)
	defer e.mu.Unlock()
	e.state.bytes += n
	if e.dirty = true; e.state.bytes > q.Bytes {
		return exceeded(q, limitBytes, q.Bytes, e.state.untilNextDay(now))
	}
	return nil
}

// unwritten reports whether the entry is to be written, and whether it was not used for long.
func (e *entry) unwritten(now time.Time) (dirty, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dirty, !e.dirty && e.users.Load() == 0 && now.Sub(e.used) > idleAfter
}

// load reads the entry from the store, once.
func (e *entry) load(ctx context.Context) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.loaded.Load() {
		return nil
	}
	book := e.account.book
	head, err := book.store.Head(ctx, e.log)
	switch {
	case errors.Is(err, replay.ErrNotFound):
	case err != nil:
		return unreadable(ctx, err)
	default:
		s, err := decodeState(head.Metadata)
		if err != nil {
			book.log.Error("what a quota has counted cannot be read, and begins anew", "quota", e.account.name, "error", err)
		}
		e.mu.Lock()
		e.revision, e.state = head.Revision, s
		e.mu.Unlock()
	}
	e.loaded.Store(true)
	return nil
}

// unreadable returns the error of a call of which the store does not say what was counted before it.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return task.Errorf(task.StoreUnavailable, "the gateway cannot count calls now; try again later").WithCause(err).
		WithData("reason", "STORE_UNAVAILABLE")
}

// write writes the entry if the store does not have a version of it. Those that wait for each other here write once.
func (e *entry) write(ctx context.Context, version uint64) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	if version > 0 && e.written >= version {
		return nil
	}
	for range 2 {
		metadata, at := e.encode()
		err := e.account.book.store.Append(ctx, replay.Append{Log: e.log, Expect: e.revision, Metadata: metadata})
		if err == nil {
			e.revision++
			e.written = at
			return nil
		}
		e.mu.Lock()
		e.dirty = true
		e.mu.Unlock()
		if !errors.Is(err, replay.ErrConflict) {
			return err
		}
		// An append that the store could not confirm was written all the same, or the entry was dropped.
		head, err := e.account.book.store.Head(ctx, e.log)
		if err != nil && !errors.Is(err, replay.ErrNotFound) {
			return err
		}
		e.revision = head.Revision
	}
	return replay.ErrConflict
}

// encode returns the state as it is stored, and its version.
func (e *entry) encode() (metadata []byte, version uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.state
	e.dirty = false
	out, _ := json.Marshal(stored{s.day, s.starts, s.bytes, s.calls.level, s.calls.at}) // of numbers
	return out, e.version
}
