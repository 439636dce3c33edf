// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testFollow follows ended logs.
func testFollow(e *env) {
	s := e.store(replay.Settings{})
	const n = 3000 // more than a driver may read at a time
	r := numbered("a", 1, n)
	e.append(s, replay.Append{Log: "a", Records: data(r[:10])})
	e.append(s, replay.Append{Log: "a", Records: data(r[10 : n-1])})
	e.append(s, replay.Append{Log: "a", Records: data(r[n-1:]), End: true})
	for _, after := range []uint64{0, 1, 9, 10, 11, n / 2, n - 1, n} {
		e.wantFollow(s, "a", after, r[after:])
	}
	seq := replay.Follow(e.Context(), s, "a", n-2, nil) // may be used twice
	for range 2 {
		got, err := follow(seq)
		if d := cmp.Diff(r[n-2:], got); d != "" || err != nil {
			e.Errorf("error %v (-want +got):\n%s", err, d)
		}
	}
	for rec, err := range replay.Follow(e.Context(), s, "a", 0, nil) { // may be left
		if err != nil || rec.Seq == 3 {
			break
		}
	}
	for rec, err := range replay.Follow(e.Context(), s, "a", 0, nil) { // in one go
		if err != nil || rec.More != (rec.Seq < n) {
			e.Errorf("record %d has More %t; error %v", rec.Seq, rec.More, err)
		}
	}
	e.append(s, replay.Append{Log: "empty", End: true})
	e.wantFollow(s, "empty", 0, nil)
	e.append(s, replay.Append{Log: "trimmed", Records: data(r[:5]), Trim: 5, End: true})
	e.wantFollow(s, "trimmed", 5, nil)
}

// testFollowErrors asks for records that cannot be followed.
func testFollowErrors(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("a", 1, 9)
	e.append(s, replay.Append{Log: "a", Records: data(r), Trim: 4, Snapshot: []byte("s")})
	e.append(s, replay.Append{Log: "empty"})
	e.append(s, replay.Append{Log: "trimmed", Records: data(r), Trim: 9, Snapshot: []byte("s")})
	for _, test := range []struct {
		log   string
		after uint64
		want  error
	}{
		{"none", 0, replay.ErrNotFound},
		{"none", 1, replay.ErrNotFound},
		{"", 0, replay.ErrNotFound},
		{"a", 0, &replay.CompactedError{After: 0, First: 5, Last: 9}},
		{"a", 3, &replay.CompactedError{After: 3, First: 5, Last: 9}},
		{"a", 10, &replay.FutureError{After: 10, Last: 9}},
		{"a", 1<<64 - 1, &replay.FutureError{After: 1<<64 - 1, Last: 9}},
		{"empty", 1, &replay.FutureError{After: 1}},
		{"trimmed", 8, &replay.CompactedError{After: 8, First: 10, Last: 9}},
	} {
		got, err := follow(replay.Follow(e.Context(), s, test.log, test.after, nil))
		if d := cmp.Diff(fmt.Sprintf("%T %[1]v", test.want), fmt.Sprintf("%T %[1]v", err)); d != "" || len(got) > 0 {
			e.Errorf("Follow(%q, %d): %d records (-want +got):\n%s", test.log, test.after, len(got), d)
		}
	}
	for rec, err := range replay.Follow(e.Context(), s, "a", 4, nil) {
		if err != nil || rec.Seq != 5 {
			e.Errorf("Follow(a, 4): %d, %v, want 5", rec.Seq, err)
		}
		break
	}
}

// testFollowLive has followers join at any time while a log is written. All see the same.
func testFollowLive(e *env) {
	s := e.store(replay.Settings{})
	const n, followers = 600, 12
	r := numbered("a", 1, n)
	e.append(s, replay.Append{Log: "a"})
	start := make([]chan uint64, followers) // the record a follower begins after
	var wg sync.WaitGroup
	for i := range followers {
		start[i] = make(chan uint64, 1)
		wg.Go(func() {
			after := <-start[i]
			got, err := follow(replay.Follow(ctx, s, "a", after, nil))
			if err == nil {
				err = dense("a", after, got)
			}
			if err != nil || after+uint64(len(got)) != n {
				e.Errorf("follower after %d: %d records, %v", after, len(got), err)
			}
		})
	}
	for i, joined := uint64(0), 0; i < n; {
		if joined < followers && i >= uint64(joined*n/followers/2) {
			start[joined] <- i / 2 * uint64(joined%3) // from the start, from the middle, from right here
			joined++
		}
		step := min(1+i%3, n-i)
		e.append(s, replay.Append{Log: "a", Records: data(r[i : i+step]), End: i+step == n})
		i += step
	}
	wg.Wait()
}

// testFollowSlow has a follower rest at its first record while the writer continues, and another read each record only
// when the writer may write the next one.
func testFollowSlow(e *env) {
	s := e.store(replay.Settings{})
	const n = 3000
	r := numbered("a", 1, n)
	e.append(s, replay.Append{Log: "a", Records: data(r[:1])})
	first, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		next := uint64(1)
		for rec, err := range replay.Follow(ctx, s, "a", 0, nil) {
			if err != nil || rec.Seq != next {
				e.Errorf("record %d, want %d, error %v", rec.Seq, next, err)
				break
			}
			if next == 1 {
				close(first)
				<-goOn
			}
			next++
		}
		if next != n+1 {
			e.Errorf("the follower saw %d records, want %d", next-1, n)
		}
	})
	step := make(chan uint64)
	wg.Go(func() {
		defer close(step)
		for rec, err := range replay.Follow(ctx, s, "a", 0, nil) {
			if err != nil {
				e.Errorf("Follow: %v", err)
				return
			}
			if rec.Seq <= 20 {
				if rec.More { // the next one is not written before this one is taken
					e.Errorf("record %d says that there are more", rec.Seq)
				}
				step <- rec.Seq
			}
		}
	})
	<-first
	at := uint64(1)
	for seq := range step {
		if seq != at {
			e.Fatalf("the follower is at %d, want %d", seq, at)
		}
		if at == 20 {
			break
		}
		e.append(s, replay.Append{Log: "a", Records: data(r[at : at+1])})
		at++
	}
	for ; at < n; at += 149 {
		e.append(s, replay.Append{Log: "a", Records: data(r[at:min(at+149, n)]), End: at+149 >= n})
	}
	close(goOn)
	for range step {
	}
	wg.Wait()
}

// testFollowTrimmed trims a log under its followers. They see everything from their beginnings on, or get an error.
func testFollowTrimmed(e *env) {
	s := e.store(replay.Settings{})
	const n, followers = 1500, 4
	r := numbered("a", 1, n)
	e.append(s, replay.Append{Log: "a"})
	var wg sync.WaitGroup
	for range followers {
		wg.Go(func() {
			got, err := follow(replay.Follow(ctx, s, "a", 0, nil))
			var gone *replay.CompactedError
			if err != nil && !errors.As(err, &gone) {
				e.Errorf("Follow: %v", err)
			}
			if gone != nil && (gone.After != uint64(len(got)) || gone.First <= gone.After+1) {
				e.Errorf("%v, but %d records were yielded", gone, len(got))
			}
			if gone == nil && len(got) != n {
				e.Errorf("%d records", len(got))
			}
			if err := dense("a", 0, got); err != nil {
				e.Error(err)
			}
		})
	}
	for i := uint64(0); i < n; i += 5 {
		a := replay.Append{Log: "a", Records: data(r[i : i+5]), End: i+5 == n}
		if i%50 == 45 {
			a.Trim, a.Snapshot = i-20, []byte("s")
		}
		e.append(s, a)
	}
	wg.Wait()

	// A follower resting while its next record is dropped gets an error.
	e.append(s, replay.Append{Log: "b", Records: data(r[:1])})
	var got []uint64
	var err error
	for rec, e2 := range replay.Follow(e.Context(), s, "b", 0, nil) {
		if err = e2; err != nil {
			break
		}
		got = append(got, rec.Seq)
		e.append(s, replay.Append{Log: "b", Records: data(r[1:1000]), Trim: 900, Snapshot: []byte("s")})
	}
	var gone *replay.CompactedError
	if !errors.As(err, &gone) || len(got) != 1 {
		e.Errorf("records %v, error %v, want a GoneError after 1", got, err)
	}
}

// testFollowCanceled ends the contexts of followers.
func testFollowCanceled(e *env) {
	s := e.store(replay.Settings{})
	e.append(s, replay.Append{Log: "a", Records: data(numbered("a", 1, 100))})
	canceled, cancel := context.WithCancel(ctx)
	defer cancel()
	var at uint64
	var err error
	for rec, e2 := range replay.Follow(canceled, s, "a", 0, nil) { // while it reads
		if err = e2; err == nil {
			at = rec.Seq
			if at == 7 {
				cancel()
			}
		}
	}
	if at != 7 || !errors.Is(err, context.Canceled) {
		e.Errorf("last record %d, want 7; error %v", at, err)
	}

	waiting, cancelWaiting := context.WithCancel(ctx)
	defer cancelWaiting()
	for rec, e2 := range replay.Follow(waiting, s, "a", 99, nil) { // while it waits
		if err = e2; err == nil && rec.Seq == 100 {
			go cancelWaiting()
		}
	}
	if !errors.Is(err, context.Canceled) {
		e.Errorf("error %v", err)
	}
	e.append(s, replay.Append{Log: "a", End: true})
}

// testFollowDropped drops a log under a resting follower, and makes a new one of the same name.
func testFollowDropped(e *env) {
	settings := replay.Settings{Retention: 1}
	s := e.store(settings)
	r := numbered("a", 1, 2000)
	e.append(s, replay.Append{Log: "a", Records: data(r)})
	var got []replay.Record
	var err error
	for rec, e2 := range replay.Follow(e.Context(), s, "a", 0, nil) {
		if err = e2; err != nil {
			break
		}
		rec.More, rec.Data = false, bytes.Clone(rec.Data)
		got = append(got, rec)
		if rec.Seq == 1 {
			e.append(s, replay.Append{Log: "a", End: true})
			e.wantDropped(s, "a", settings.Retention)
			e.append(s, replay.Append{Log: "a", Records: data(numbered("b", 1, 3000))})
		}
	}
	var gone *replay.CompactedError
	if !errors.Is(err, replay.ErrNotFound) && !errors.As(err, &gone) {
		e.Errorf("%d records, error %v, want ErrNotFound or a GoneError", len(got), err)
	}
	if err := dense("a", 0, got); err != nil {
		e.Error(err)
	}
}
