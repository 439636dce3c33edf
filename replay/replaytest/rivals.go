// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testRivals has two writers with the same state of a log append to it at the same time, in every way there is. One of
// them succeeds, and the log is the result of its append.
func testRivals(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("r", 1, 3)
	continues := map[string]replay.Append{
		"records":  {Records: data(r)},
		"nothing":  {},
		"due":      {DueAt: replay.Recover},
		"listed":   {Lists: []replay.Listing{{List: "list"}}},
		"durable":  {Records: data(r[:1]), Durable: true},
		"end":      {Records: data(r[:1]), End: true},
		"end only": {End: true},
		"trim":     {Trim: 2, Snapshot: []byte("s")},
		"drop":     {Drop: true},
	}
	begins := map[string]replay.Append{
		"records": {Records: data(r)},
		"nothing": {},
		"intent":  {DueAt: replay.Recover, Intent: true},
		"durable": {DueAt: replay.Recover, Durable: true},
		"end":     {End: true},
	}
	race := func(log, one, other string, a, b replay.Append, knows uint64) {
		rivals := []replay.Append{a, b}
		errs := make([]error, len(rivals))
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range rivals {
			rivals[i].Log, rivals[i].Expect, rivals[i].Metadata = log, knows, fmt.Append(nil, i)
			wg.Go(func() {
				<-start
				errs[i] = s.Append(ctx, rivals[i])
			})
		}
		close(start)
		wg.Wait()
		won := slices.Index(errs, nil)
		if won < 0 || !errors.Is(errs[1-won], replay.ErrConflict) {
			e.Fatalf("%s and %s at revision %d: %v and %v, want one ErrConflict", one, other, knows, errs[0], errs[1])
		}
		if rivals[won].Drop {
			e.wantNotFound(s, log)
			return
		}
		h, err := s.Head(e.Context(), log)
		if err != nil || h.Revision != knows+1 || string(h.Metadata) != string(rivals[won].Metadata) {
			e.Fatalf("%s and %s at revision %d: %d has won, then %+v, %v", one, other, knows, won, h, err)
		}
	}
	for one, a := range begins {
		for other, b := range begins {
			log := "new " + one + "/" + other
			race(log, one, other, a, b, 0)
		}
	}
	for one, a := range continues {
		for other, b := range continues {
			for _, intent := range []bool{false, true} { // for the beginning of the log
				log := fmt.Sprint(one, "/", other, "/", intent)
				e.append(s, replay.Append{Log: log, DueAt: replay.Recover, Intent: intent})
				if !intent || a.Trim > 0 || b.Trim > 0 {
					e.append(s, replay.Append{Log: log, Records: data(r)})
				}
				race(log, one, other, a, b, e.appended[log].revision)
			}
		}
	}
}
