// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/replay"
)

// next has a reader return records, and checks them.
func (e *env) next(r replay.Reader, log string, after uint64, want int) (more bool) {
	e.Helper()
	records, more, err := r.Next(e.Context(), nil)
	if err == nil {
		err = dense(log, after, records)
	}
	if err != nil || len(records) != want {
		e.Fatalf("Next: %d records, %v; want %d", len(records), err, want)
	}
	return more
}

// testReader reads a log as it grows, and ends.
func testReader(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("a", 1, 3000)
	early := s.Read("a", 0) // opens nothing yet
	defer early.Close()
	e.append(s, replay.Append{Log: "a", Records: data(r[:3])})
	if e.next(early, "a", 0, 3) {
		e.Error("more records are returned than there are")
	}
	for range 2 {
		e.next(early, "a", 3, 0)
	}
	e.append(s, replay.Append{Log: "a", Records: data(r[3:])})
	for at, more := uint64(3), true; more; {
		var records []replay.Record
		var err error
		if records, more, err = early.Next(e.Context(), nil); err == nil {
			err = dense("a", at, records)
		}
		at += uint64(len(records))
		if err != nil || len(records) == 0 || more != (at < 3000) {
			e.Fatalf("%d records up to %d, more: %t, %v", len(records), at, more, err)
		}
	}
	e.append(s, replay.Append{Log: "a", End: true})
	for range 2 {
		if records, _, err := early.Next(e.Context(), nil); err != io.EOF || len(records) > 0 {
			e.Errorf("at the end: %d records, %v, want EOF", len(records), err)
		}
	}
	none := s.Read("none", 0)
	defer none.Close()
	if _, _, err := none.Next(e.Context(), nil); !errors.Is(err, replay.ErrNotFound) {
		e.Errorf("of no log: %v, want ErrNotFound", err)
	}
}

// testRewind has a reader return records again, from the database and from recent appends.
func testRewind(e *env) {
	s := e.store(replay.Settings{})
	const n = 3000
	r := numbered("a", 1, n)
	e.append(s, replay.Append{Log: "a", Records: data(r[:n/2])})
	reader := s.Read("a", 0)
	defer reader.Close()
	at, appended := uint64(0), n/2
	for step := 0; at < n; step++ {
		records, _, err := reader.Next(e.Context(), nil)
		if err == nil {
			err = dense("a", at, records)
		}
		if err != nil {
			e.Fatal(err)
		}
		keep := len(records)
		switch {
		case step%3 == 0 && keep > 1: // some of them are returned again
			keep /= 2
			reader.Rewind(at + uint64(keep))
		case step%3 == 1 && keep > 0 && step%2 == 0: // all of them
			keep = 0
			reader.Rewind(at)
		}
		if at += uint64(keep); at == uint64(appended) && appended < n {
			e.append(s, replay.Append{Log: "a", Records: data(r[appended : appended+10])})
			appended += 10
		}
	}
	e.next(reader, "a", n, 0)
	reader.Rewind(n)
	e.next(reader, "a", n, 0)
	if s.Unread("a", n) {
		e.Error("the last record is unread")
	}
}

// testWake has readers woken: at once if there is something to read, else by an append, and only once.
func testWake(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("a", 1, 10)
	e.append(s, replay.Append{Log: "a", Records: data(r[:2])})
	reader := s.Read("a", 0)
	defer reader.Close()
	var calls, others atomic.Int32
	call := func() { calls.Add(1) }
	want := func(what string, n int32) {
		e.Helper()
		if got := calls.Swap(0); got != n || others.Load() != 0 {
			e.Errorf("%s: %d calls, and %d of those taken back; want %d", what, got, others.Load(), n)
		}
	}
	reader.Wake(call)
	want("before it has begun", 1)
	e.next(reader, "a", 0, 2)
	reader.Wake(call)
	want("when it has caught up", 0)
	e.append(s, replay.Append{Log: "a", Metadata: []byte("m")})
	want("after a change that adds no record", 0)
	e.append(s, replay.Append{Log: "a", Records: data(r[2:3])})
	want("after a record", 1)
	e.append(s, replay.Append{Log: "a", Records: data(r[3:4])})
	want("after another one", 0)
	reader.Wake(call)
	want("with records to read", 1)
	e.next(reader, "a", 2, 2)
	reader.Wake(func() { others.Add(1) })
	reader.Wake(call) // instead of the other one
	e.append(s, replay.Append{Log: "a", Records: data(r[4:5])})
	want("after its replacement", 1)
	e.next(reader, "a", 4, 1)
	reader.Wake(func() { others.Add(1) })
	reader.Wake(nil)
	closed := s.Read("a", 5)
	e.next(closed, "a", 5, 0)
	closed.Wake(func() { others.Add(1) })
	closed.Close()
	e.append(s, replay.Append{Log: "a", Records: data(r[5:6])})
	want("when it was taken back", 0)
	e.next(reader, "a", 5, 1)
	reader.Wake(call)
	e.append(s, replay.Append{Log: "a", End: true})
	want("at the end", 1)
	reader.Wake(call)
	want("after the end", 1)
}

// testUnread asks for records not read by readers.
func testUnread(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("a", 1, 10)
	want := func(what string, seq uint64, unread bool) {
		e.Helper()
		if got := s.Unread("a", seq); got != unread {
			e.Errorf("%s: record %d is unread: %t, want %t", what, seq, got, unread)
		}
	}
	want("without a log", 1, false)
	e.append(s, replay.Append{Log: "a", Records: data(r[:4])})
	reader := s.Read("a", 0)
	want("before a reader has begun", 4, false)
	e.next(reader, "a", 0, 4)
	want("of what is read", 4, false)
	e.append(s, replay.Append{Log: "a", Records: data(r[4:8])})
	want("of what is read, with more behind it", 4, false)
	want("of what is not", 5, true)
	e.next(reader, "a", 4, 4)
	want("of what is read meanwhile", 8, false)
	e.append(s, replay.Append{Log: "a", Records: data(r[8:]), Trim: 9, Snapshot: []byte("s")})
	want("of what is not kept any more", 9, false)
	want("by a reader that has lost records", 10, false)
	behind := s.Read("a", 9)
	e.next(behind, "a", 9, 1)
	reader.Close()
	behind.Close()
	e.append(s, replay.Append{Log: "a", Records: data(numbered("a", 11, 1))})
	want("without readers", 11, false)
}

// testWakeClose closes a store under waiting readers.
func testWakeClose(e *env) {
	s := e.store(replay.Settings{})
	e.append(s, replay.Append{Log: "a", Records: data(numbered("a", 1, 1))})
	var wg sync.WaitGroup
	for range 5 {
		reader := s.Read("a", 1)
		defer reader.Close()
		e.next(reader, "a", 1, 0)
		wg.Add(1)
		reader.Wake(wg.Done)
	}
	if err := s.Close(); err != nil {
		e.Fatal(err)
	}
	wg.Wait()
	late := s.Read("a", 1)
	defer late.Close()
	wg.Add(1)
	late.Wake(wg.Done)
	wg.Wait()
	if _, _, err := late.Next(e.Context(), nil); !errors.Is(err, replay.ErrClosed) {
		e.Errorf("Next after Close: %v, want ErrClosed", err)
	}
}

// testWakeRace has readers wait while the log is written: none of them misses a record.
func testWakeRace(e *env) {
	s := e.store(replay.Settings{})
	n, readers := uint64(e.times(2000)), 8
	r := numbered("a", 1, int(n))
	e.append(s, replay.Append{Log: "a"})
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			reader := s.Read("a", 0)
			defer reader.Close()
			calls := make(chan struct{})
			wake := func() { go func() { calls <- struct{}{} }() }
			for at := uint64(0); ; {
				records, _, err := reader.Next(ctx, nil)
				if err == io.EOF && at == n {
					return
				}
				if err == nil {
					err = dense("a", at, records)
				}
				if err != nil {
					e.Errorf("reader %d at %d: %v", i, at, err)
					return
				}
				if at += uint64(len(records)); len(records) == 0 {
					reader.Wake(wake)
					<-calls
				}
			}
		})
	}
	for i := uint64(0); i < n; i++ {
		e.append(s, replay.Append{Log: "a", Records: data(r[i : i+1]), End: i+1 == n})
	}
	wg.Wait()
}
