// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testMaxSize lets logs end until they take too much. The oldest go, and no log that has not ended.
func testMaxSize(e *env) {
	const size, most = 100_000, 10 // bytes of a log, and the number of logs that may be kept
	settings := replay.Settings{MaxSize: most*size + size/2, Retention: time.Hour}
	s := e.store(settings)
	wake := time.Unix(5, 0)
	record := [][]byte{make([]byte, size)}
	add := func(log string, end bool) {
		e.Helper()
		e.append(s, replay.Append{Log: log, Records: record, DueAt: wake, End: end})
	}
	// kept waits until so many ended logs are kept, and checks that they are the last ended.
	kept := func(want int, ended []string) {
		e.Helper()
		ended = ended[len(ended)-want:]
		for {
			e.pass(slack)
			var got []string
			for entry, err := range s.List(e.Context(), "e", "") {
				if err != nil {
					e.Fatal(err)
				}
				got = append(got, entry.Log)
			}
			if len(got) < want {
				e.Fatalf("%q are kept, want %q", got, ended)
			}
			if len(got) > want && !e.Bubble {
				continue // it is being dropped
			}
			if !slices.Equal(got, ended) {
				e.Fatalf("%q are kept, want %q", got, ended)
			}
			return
		}
	}
	for i := range 2 * most {
		add(fmt.Sprint("open", i), false) // more than all ended ones may take
	}
	var ended []string
	for i := range 3 * most {
		ended = append(ended, fmt.Sprintf("ended%02d", i))
		add(ended[i], false)
		e.append(s, replay.Append{Log: ended[i], End: true, DueAt: wake})
		e.pass(time.Second)
	}
	kept(most, ended)
	if e.Reopen == nil {
		s.Configure(settings) // changes nothing
	} else {
		s = e.Reopen(e.T, s, settings)
		e.Cleanup(func() { _ = s.Close() }) // the suite closes the one before
	}
	kept(most, ended)
	ended = append(ended, "ended30")
	add(ended[30], true)
	kept(most, ended)

	settings.MaxSize = 3*size + size/2
	s.Configure(settings)
	kept(3, ended)
	if _, err := follow(replay.Follow(e.Context(), s, ended[0], 0, nil)); !errors.Is(err, replay.ErrNotFound) {
		e.Errorf("Follow of a log that was dropped: %v", err)
	}
	n := 0
	for _, w := range e.due(s, 'e', replay.Recover, wake) {
		if n++; !slices.Contains(ended[len(ended)-3:], w.Log) {
			e.Errorf("%s is due, and was dropped", w.Log)
		}
	}
	if n != 3 {
		e.Errorf("%d logs are due, want 3", n)
	}
	settings.MaxSize = 0
	s.Configure(settings)
	for i := range most {
		ended = append(ended, fmt.Sprintf("ended9%d", i))
		add(ended[len(ended)-1], true)
	}
	kept(3+most, ended)

	n = 0
	for entry, err := range s.List(e.Context(), "open", "") {
		if err != nil || entry.Head.Last != 1 || !strings.HasPrefix(entry.Log, "open") {
			e.Errorf("%s: %+v, %v", entry.Log, entry.Head, err)
		}
		n++
	}
	if n != 2*most {
		e.Errorf("%d of the logs that have not ended are kept, want %d", n, 2*most)
	}
}
