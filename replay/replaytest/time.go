// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testDue sets, replaces and removes the due times of logs.
func testDue(e *env) {
	s := e.store(replay.Settings{})
	start := time.Unix(1_800_000_000, 123_456_789)
	at := func(sec int) time.Time { return start.Add(time.Duration(sec) * time.Second) }
	wakeup := func(log string, t time.Time) replay.DueLog { return replay.DueLog{Log: "t/" + log, At: t} }
	set := func(log string, t time.Time, end bool) {
		e.Helper()
		e.append(s, replay.Append{Log: "t/" + log, Records: [][]byte{{1}}, DueAt: t, End: end})
	}
	forever := time.Unix(1<<40, 0)
	e.wantDue(s, 't', replay.Recover, forever)

	set("late", at(9), false)
	set("early", at(1), false)
	set("running 2", replay.Recover, false)
	set("none", time.Time{}, false)
	set("middle", at(5), false)
	set("running 1", replay.Recover, false)
	set("same b", at(7), false)
	set("same a", at(7), false)
	running := []replay.DueLog{wakeup("running 1", replay.Recover), wakeup("running 2", replay.Recover)}
	timed := []replay.DueLog{
		wakeup("early", at(1)), wakeup("middle", at(5)), wakeup("same a", at(7)), wakeup("same b", at(7)),
		wakeup("late", at(9)),
	}
	e.wantDue(s, 't', replay.Recover, forever, append(running[:2:2], timed...)...)
	e.wantDue(s, 't', time.Time{}, forever, append(running[:2:2], timed...)...)
	e.wantDue(s, 't', replay.Recover, replay.Recover, running...)
	e.wantDue(s, 't', at(1), at(5), timed[:2]...) // both ends belong
	e.wantDue(s, 't', at(1).Add(1), at(5).Add(-1))
	e.wantDue(s, 't', at(5), at(1))
	e.wantDue(s, 't', time.Unix(1, 0), at(7), timed[:4]...)

	set("early", at(8), false)        // later
	set("late", at(2), false)         // earlier
	set("middle", time.Time{}, false) // no more
	set("running 1", at(3), false)
	set("running 2", replay.Recover, false) // again
	set("same a", at(7), false)             // the same
	set("same b", at(7), true)              // also of an ended log
	e.wantDue(s, 't', replay.Recover, forever,
		running[1], wakeup("late", at(2)), wakeup("running 1", at(3)), wakeup("same a", at(7)), wakeup("same b", at(7)),
		wakeup("early", at(8)))

	// A refused append leaves it.
	if err := s.Append(e.Context(), replay.Append{Log: "t/late", Expect: 77, DueAt: at(100)}); !errors.Is(err,
		replay.ErrConflict) {
		e.Errorf("error %v, want ErrConflict", err)
	}
	e.wantDue(s, 't', at(2), at(2), wakeup("late", at(2)))
}

// testDuePages has many logs due, and changes them while it goes through them: Due sees them as they were.
func testDuePages(e *env) {
	s := e.store(replay.Settings{})
	const n = 700
	e.each(n, func(i int) {
		for _, class := range []string{"", "/", "1"} { // others are not met: those of the class begin with 0
			e.append(s, replay.Append{Log: fmt.Sprintf("%s%04d", class, i), DueAt: time.Unix(int64(1+i/3), 0)})
		}
	})
	i := 0
	for w, err := range s.Due(e.Context(), '0', replay.Recover, time.Unix(n, 0)) {
		if err != nil {
			e.Fatal(err)
		}
		if want := (replay.DueLog{Log: fmt.Sprintf("%04d", i), At: time.Unix(int64(1+i/3), 0)}); w != want {
			e.Fatalf("log %d: %v, want %v", i, w, want)
		}
		if i%2 == 0 {
			e.append(s, replay.Append{Log: w.Log, DueAt: time.Unix(n-1, 0)}) // would be met again
		} else {
			e.append(s, replay.Append{Log: fmt.Sprintf("%04d", n-1-i/2), DueAt: time.Time{}})
		}
		i++
	}
	if i != n {
		e.Errorf("%d logs were due, want %d", i, n)
	}
	for range s.Due(e.Context(), '0', replay.Recover, time.Unix(n, 0)) {
		break
	}
}

// testRetention ends logs; they are dropped with all their data.
func testRetention(e *env) {
	settings := replay.Settings{Retention: time.Minute}
	if !e.Bubble {
		settings.Retention = time.Millisecond
	}
	s := e.store(settings)
	r := numbered("a", 1, 40)
	wake := time.Unix(5, 0)
	e.each(200, func(i int) { // more than a driver may drop at a time
		log := fmt.Sprint(i)
		e.append(s, replay.Append{Log: log, Records: data(r), DueAt: wake})
		e.append(s, replay.Append{Log: log, Records: data(r[:1]), Trim: uint64(i%2) * 30, Snapshot: []byte("s"),
			End: true, DueAt: wake})
	})
	e.append(s, replay.Append{Log: "open", Records: data(r), DueAt: wake})
	if e.Bubble {
		e.pass(settings.Retention - 1)
		e.wantFollow(s, "0", 39, append(r[39:40:40], replay.Record{Seq: 41, Data: r[0].Data}))
	}
	for i := range 200 {
		e.wantDropped(s, fmt.Sprint(i), 1)
		if _, err := follow(replay.Follow(e.Context(), s, fmt.Sprint(i), 0, nil)); !errors.Is(err, replay.ErrNotFound) {
			e.Errorf("Follow(%d): %v, want ErrNotFound", i, err)
		}
	}
	e.wantLoad(s, "open", state{replay.Head{First: 1, Last: 40, Bytes: size(r), DueAt: wake}, nil, r})
	for class := range 256 {
		if class != 'o' {
			e.wantDue(s, byte(class), replay.Recover, wake)
		}
	}
	e.wantDue(s, 'o', replay.Recover, wake, replay.DueLog{Log: "open", At: wake})
	e.wantList(s, "", "", replay.Entry{Log: "open", Head: replay.Head{First: 1, Last: 40, Bytes: size(r), DueAt: wake}})

	// The name can be used again, and nothing of before is left in it.
	e.append(s, replay.Append{Log: "1", Records: data(r[:2])})
	e.wantLoad(s, "1", state{replay.Head{First: 1, Last: 2, Bytes: size(r[:2])}, nil, r[:2]})
	e.append(s, replay.Append{Log: "1", End: true})
	e.wantDropped(s, "1", settings.Retention)
}

// testConfigure changes the retention. Ended logs keep the one they ended with.
func testConfigure(e *env) {
	if !e.Bubble {
		s := e.store(replay.Settings{Retention: time.Hour})
		s.Configure(replay.Settings{Retention: time.Millisecond, Sync: replay.SyncAlways})
		e.append(s, replay.Append{Log: "short", End: true})
		e.wantDropped(s, "short", 0)
		return
	}
	s := e.store(replay.Settings{Retention: time.Hour})
	e.append(s, replay.Append{Log: "hour", End: true})
	s.Configure(replay.Settings{Retention: time.Minute, Sync: replay.SyncAlways})
	e.append(s, replay.Append{Log: "minute", End: true})
	s.Configure(replay.Settings{Sync: replay.SyncNever})
	e.append(s, replay.Append{Log: "default", End: true})
	passed := time.Duration(0)
	for _, step := range []struct {
		log string
		d   time.Duration
	}{{"minute", time.Minute}, {"hour", time.Hour}, {"default", replay.DefaultRetention}} {
		e.pass(step.d - passed - 1)
		if _, _, _, err := s.Load(e.Context(), step.log); err != nil {
			e.Errorf("%s, before its time: %v", step.log, err)
		}
		e.wantDropped(s, step.log, 1)
		passed = step.d + 1 + slack
	}
}

// testClose closes a store in use.
func testClose(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("a", 1, 3)
	e.append(s, replay.Append{Log: "a", Records: data(r)})
	var wg sync.WaitGroup
	started := make(chan struct{}, 5)
	for range cap(started) {
		wg.Go(func() {
			var err error
			for rec, e2 := range replay.Follow(ctx, s, "a", 0, nil) {
				if err = e2; err == nil && rec.Seq == 3 {
					started <- struct{}{}
				}
			}
			if !errors.Is(err, replay.ErrClosed) {
				e.Errorf("a follower ended with %v, want ErrClosed", err)
			}
		})
	}
	var writer error
	wg.Go(func() {
		for i := uint64(0); writer == nil; i++ {
			writer = s.Append(ctx, replay.Append{Log: "w", Expect: i, Records: [][]byte{{1}}})
		}
	})
	for range cap(started) {
		<-started
	}
	if e.Bubble {
		e.append(s, replay.Append{Log: "b", End: true})
	}
	for range 2 {
		if err := s.Close(); err != nil {
			e.Fatalf("Close: %v", err)
		}
	}
	wg.Wait()
	s.Configure(replay.Settings{})
	_, _, _, load := s.Load(e.Context(), "a")
	_, follow := follow(replay.Follow(e.Context(), s, "a", 0, nil))
	_, head := s.Head(e.Context(), "a")
	for name, err := range map[string]error{
		"Load": load, "Head": head, "Follow": follow, "Due": last(s.Due(e.Context(), 'a', replay.Recover, replay.Recover)),
		"List": last(s.List(e.Context(), "", "")), "a writer": writer,
		"Append": s.Append(e.Context(), replay.Append{Log: "new"}),
	} {
		if !errors.Is(err, replay.ErrClosed) {
			e.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

// testCloseInLoops closes a store in the middle of a sequence.
func testCloseInLoops(e *env) {
	for _, name := range []string{"Due", "Follow", "List"} {
		s := e.store(replay.Settings{})
		e.each(600, func(i int) { e.append(s, replay.Append{Log: fmt.Sprintf("t%d", i), DueAt: replay.Recover}) })
		e.append(s, replay.Append{Log: "a", Records: data(numbered("a", 1, 1000))})
		n := 0
		loop := func(e2 error) (last error) {
			if n++; n == 5 {
				if err := s.Close(); err != nil {
					e.Errorf("Close: %v", err)
				}
			}
			return e2
		}
		var err error
		switch name {
		case "Due":
			for _, e2 := range s.Due(e.Context(), 't', replay.Recover, replay.Recover) {
				err = loop(e2)
			}
			if err == nil && n == 600 {
				continue // a driver may have read them all beforehand
			}
		case "List":
			for _, e2 := range s.List(e.Context(), "t", "") {
				err = loop(e2)
			}
		default:
			for _, e2 := range replay.Follow(e.Context(), s, "a", 0, nil) {
				err = loop(e2)
			}
		}
		if !errors.Is(err, replay.ErrClosed) {
			e.Errorf("%s ended with %v, want ErrClosed", name, err)
		}
	}
}

// last returns the error at the end of a sequence.
func last[T any](seq iter.Seq2[T, error]) (err error) {
	for _, err = range seq {
	}
	return err
}

// testContext calls everything with an ended context.
func testContext(e *env) {
	s := e.store(replay.Settings{})
	e.append(s, replay.Append{Log: "a", Records: data(numbered("a", 1, 1))})
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, _, _, load := s.Load(canceled, "a")
	_, follow := follow(replay.Follow(canceled, s, "a", 0, nil))
	_, head := s.Head(canceled, "a")
	for name, err := range map[string]error{
		"Load": load, "Head": head, "Follow": follow, "Due": last(s.Due(canceled, 'a', replay.Recover, replay.Recover)),
		"List": last(s.List(canceled, "", "")), "Append": s.Append(canceled, replay.Append{Log: "b"}),
	} {
		if !errors.Is(err, context.Canceled) {
			e.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
	e.wantNotFound(s, "b")
}

// testReopen closes a store and opens it again.
func testReopen(e *env) {
	if e.Reopen == nil {
		return
	}
	for _, mode := range []replay.SyncMode{replay.SyncState, replay.SyncAlways, replay.SyncNever} {
		settings := replay.Settings{Sync: mode}
		s := e.openNew(settings)
		r := numbered("a", 1, 30)
		e.append(s, replay.Append{Log: "a", Records: data(r), Trim: 3, Snapshot: []byte("snapshot"),
			Metadata: []byte("note"), DueAt: replay.Recover, Durable: true})
		e.append(s, replay.Append{Log: "b", Metadata: []byte("running"), DueAt: time.Unix(9, 9)})
		e.append(s, replay.Append{Log: "c", Records: data(r[:2]), End: true})
		for range 3 {
			s = e.Reopen(e.T, s, settings)
			e.wantLoad(s, "a", state{
				replay.Head{First: 4, Last: 30, Bytes: size(r[3:]), Metadata: []byte("note"), DueAt: replay.Recover},
				[]byte("snapshot"), r[3:],
			})
			e.wantLoad(s, "b", state{Head: replay.Head{First: 1, Metadata: []byte("running"), DueAt: time.Unix(9, 9)}})
			e.wantLoad(s, "c", state{replay.Head{First: 1, Last: 2, Bytes: size(r[:2]), Ended: time.Now()}, nil, r[:2]})
			e.wantDue(s, 'a', replay.Recover, time.Now(), replay.DueLog{Log: "a", At: replay.Recover})
			e.wantDue(s, 'b', replay.Recover, time.Now(), replay.DueLog{Log: "b", At: time.Unix(9, 9)})
			e.wantList(s, "", "a",
				replay.Entry{Log: "b", Head: replay.Head{First: 1, Metadata: []byte("running"), DueAt: time.Unix(9, 9)}},
				replay.Entry{Log: "c", Head: replay.Head{First: 1, Last: 2, Bytes: size(r[:2]), Ended: time.Now()}})
			e.wantFollow(s, "c", 1, r[1:2])
		}
		for _, log := range []string{"a", "c"} {
			if err := s.Append(e.Context(), replay.Append{Log: log, Records: data(r)}); !errors.Is(err, replay.ErrConflict) {
				e.Errorf("Append to %s: %v, want ErrConflict", log, err)
			}
		}
		more := numbered("a", 31, 1)
		e.append(s, replay.Append{Log: "a", Records: data(more), End: true})
		e.wantFollow(s, "a", 29, append(r[29:30:30], more...))
		if err := s.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	}
}

// testReopenExpired opens a store with retentions over, or soon over.
func testReopenExpired(e *env) {
	if e.Reopen == nil || !e.Bubble {
		return
	}
	settings := replay.Settings{Retention: time.Minute}
	s := e.openNew(settings)
	e.append(s, replay.Append{Log: "past", End: true})
	e.pass(30 * time.Second)
	e.append(s, replay.Append{Log: "future", End: true})
	if err := s.Close(); err != nil {
		e.Errorf("Close: %v", err)
	}
	e.pass(45 * time.Second)
	s = e.Reopen(e.T, s, settings)
	e.wantDropped(s, "past", 0)
	e.wantLoad(s, "future", state{Head: replay.Head{First: 1, Ended: time.Now()}})
	e.wantDropped(s, "future", 15*time.Second)
	if err := s.Close(); err != nil {
		e.Errorf("Close: %v", err)
	}
}
