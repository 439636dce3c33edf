// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testUnavailable takes a store's disk away, more than once, and gives it back.
func testUnavailable(e *env) {
	if e.Break == nil {
		s := e.store(replay.Settings{})
		if s.Reopened() != nil {
			e.Error("Reopened is not nil, but this driver is always available")
		}
		return
	}
	e.appended = make(map[string]appended)
	retention := time.Hour
	if !e.Bubble {
		retention = time.Millisecond
	}
	s, broken := e.Break(e.T, replay.Settings{Retention: retention})
	defer func() {
		if err := s.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	}()
	e.append(s, replay.Append{Log: "followed", Records: data(numbered("followed", 1, 1))})
	e.append(s, replay.Append{Log: "ends", Records: data(numbered("ends", 1, 1)), End: true})
	s.Configure(replay.Settings{Retention: time.Hour}) // for the other log
	followed, begun := make(chan error, 1), make(chan struct{}, 2)
	go func() {
		records, err := follow(func(yield func(replay.Record, error) bool) {
			for r, err := range replay.Follow(ctx, s, "followed", 0, nil) {
				if err != nil || r.Seq == 1 {
					begun <- struct{}{}
				}
				if !yield(r, err) {
					return
				}
			}
		})
		if err == nil {
			err = dense("followed", 0, records)
		}
		if err == nil && len(records) != 4 {
			err = fmt.Errorf("%d records, want 4", len(records))
		}
		followed <- err
	}()
	<-begun
	e.pass(0) // until it waits
	for last := uint64(1); last < 4; last++ {
		reopened := s.Reopened()
		broken(true)
		var err error
		for i := uint64(0); err == nil; i++ { // some may still be written
			err = s.Append(ctx, replay.Append{Log: fmt.Sprint("filler", last), Expect: i,
				Records: [][]byte{make([]byte, 100_000)}, Durable: true})
		}
		if !errors.Is(err, replay.ErrUnavailable) {
			e.Errorf("Append: %v, want ErrUnavailable", err)
		}
		if err := s.Writable(); !errors.Is(err, replay.ErrUnavailable) {
			e.Errorf("Writable: %v, want ErrUnavailable", err)
		}
		for w, err := range s.Due(ctx, 'f', replay.Recover, replay.EndOfTime) {
			if err != nil && !errors.Is(err, replay.ErrUnavailable) {
				e.Errorf("Due: %q, %v", w.Log, err)
			}
		}
		e.pass(2 * time.Hour)
		if h, err := s.Head(ctx, "followed"); err != nil && !errors.Is(err, replay.ErrUnavailable) || err == nil &&
			h.Last != last {
			e.Errorf("Head: %+v, %v, want %d records or ErrUnavailable", h, err, last)
		}
		select {
		case <-reopened:
			e.Error("Reopened says that the store can be written")
		default:
		}
		broken(false)
		<-reopened
		a := replay.Append{Log: "followed", Records: data(numbered("followed", last+1, 1)), End: last == 3}
		e.append(s, a)
	}
	if err := <-followed; err != nil {
		e.Errorf("a follower: %v", err)
	}
	e.wantDropped(s, "ends", 0) // its retention was over meanwhile
}
