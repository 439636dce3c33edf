// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testDueClasses has logs of all classes due at the same times. Due yields the logs of one class alone.
func testDueClasses(e *env) {
	s := e.store(replay.Settings{})
	at := time.Unix(1_800_000_000, 0)
	e.each(256, func(class int) {
		c := string([]byte{byte(class)})
		for _, log := range []string{c + "late", c + "soon", c} {
			e.append(s, replay.Append{Log: log, DueAt: at})
		}
		e.append(s, replay.Append{Log: c + "late", DueAt: at.Add(1)})
		e.append(s, replay.Append{Log: c + "running", DueAt: replay.Recover})
		e.append(s, replay.Append{Log: c + "none"})
	})
	forever := time.Unix(1<<40, 0)
	for class := range 256 {
		c := string([]byte{byte(class)})
		running, soon := replay.DueLog{Log: c + "running", At: replay.Recover}, replay.DueLog{Log: c + "soon", At: at}
		alone, late := replay.DueLog{Log: c, At: at}, replay.DueLog{Log: c + "late", At: at.Add(1)}
		e.wantDue(s, byte(class), replay.Recover, forever, running, alone, soon, late)
		e.wantDue(s, byte(class), replay.Recover, replay.Recover, running)
		e.wantDue(s, byte(class), at, at, alone, soon)
		e.wantDue(s, byte(class), at.Add(1), forever, late)
		e.wantDue(s, byte(class), at.Add(2), forever)
	}
}

// testHead asks for the head of a log in every state of its life.
func testHead(e *env) {
	s := e.store(replay.Settings{Retention: e.minute()})
	r := numbered("a", 1, 4)
	if _, err := s.Head(e.Context(), "a"); !errors.Is(err, replay.ErrNotFound) {
		e.Errorf("Head of a log that does not exist: %v, want ErrNotFound", err)
	}
	if h, err := s.Head(e.Context(), "a"); !errors.Is(err, replay.ErrNotFound) || h.First != 0 {
		e.Errorf("Head, asked for again: %+v, %v, want ErrNotFound", h, err)
	}
	for _, step := range []struct {
		append replay.Append
		want   replay.Head
	}{
		{replay.Append{Metadata: []byte("one")}, replay.Head{First: 1, Metadata: []byte("one")}},
		{
			replay.Append{Records: data(r[:3]), Metadata: []byte("another"), DueAt: replay.Recover},
			replay.Head{First: 1, Last: 3, Bytes: size(r[:3]), Metadata: []byte("another"), DueAt: replay.Recover},
		},
		{
			replay.Append{Trim: 2, Snapshot: []byte("s"), DueAt: time.Unix(7, 7)},
			replay.Head{First: 3, Last: 3, Bytes: size(r[2:3]), DueAt: time.Unix(7, 7)},
		},
		{
			replay.Append{Records: data(r[3:]), Metadata: []byte("end"), End: true},
			replay.Head{First: 3, Last: 4, Bytes: size(r[2:]), Metadata: []byte("end"), Ended: time.Now()},
		},
	} {
		step.append.Log = "a"
		e.append(s, step.append)
		e.wantHead(s, "a", step.want)
	}
	for _, log := range []string{"", "b", "a\x00", strings.Repeat("a", replay.MaxName+1)} {
		e.wantNotFound(s, log)
	}
	if e.Bubble {
		e.wantDropped(s, "a", time.Minute)
	}
}

// testList lists logs by the beginnings of their names, and from some name on.
func testList(e *env) {
	s := e.store(replay.Settings{Retention: e.minute()})
	e.wantList(s, "", "")
	heads := map[string]replay.Head{
		"s":          {First: 1},
		"t":          {First: 1, Metadata: []byte("one byte")},
		"t\x00":      {First: 1, DueAt: replay.Recover},
		"t/a":        {First: 1, Last: 2, Bytes: size(numbered("t/a", 1, 2)), Metadata: []byte("a")},
		"t/a/1":      {First: 1, Last: 1, Bytes: size(numbered("t/a/1", 1, 1)), Ended: time.Now()},
		"t/b":        {First: 1, DueAt: time.Unix(9, 0)},
		"t\xff":      {First: 1},
		"t\xff\xff":  {First: 1},
		"u":          {First: 1},
		"\xff":       {First: 1},
		"\xff\xff/1": {First: 1, Metadata: []byte("last")},
	}
	for log, h := range heads {
		e.append(s, replay.Append{Log: log, Records: data(numbered(log, 1, int(h.Last))), Metadata: h.Metadata,
			DueAt: h.DueAt, End: !h.Ended.IsZero()})
	}
	for _, test := range []struct {
		prefix, after string
		want          []string
	}{
		{"", "", []string{"s", "t", "t\x00", "t/a", "t/a/1", "t/b", "t\xff", "t\xff\xff", "u", "\xff", "\xff\xff/1"}},
		{"", "t/b", []string{"t\xff", "t\xff\xff", "u", "\xff", "\xff\xff/1"}},
		{"", "\xff\xff/1", nil},
		{"", "\xff\xff\xff", nil},
		{"t", "", []string{"t", "t\x00", "t/a", "t/a/1", "t/b", "t\xff", "t\xff\xff"}},
		{"t", "t", []string{"t\x00", "t/a", "t/a/1", "t/b", "t\xff", "t\xff\xff"}},
		{"t", "s", []string{"t", "t\x00", "t/a", "t/a/1", "t/b", "t\xff", "t\xff\xff"}}, // before all of them
		{"t", "t/ab", []string{"t/b", "t\xff", "t\xff\xff"}},                            // no log has this name
		{"t", "u", nil}, // after all of them
		{"t", strings.Repeat("t", 2*replay.MaxName), []string{"t\xff", "t\xff\xff"}},
		{"t/", "", []string{"t/a", "t/a/1", "t/b"}},
		{"t/a", "t/a", []string{"t/a/1"}},
		{"t/a/1", "", []string{"t/a/1"}},
		{"t/a/1", "t/a/1", nil},
		{"t/c", "", nil},
		{"t\xff", "", []string{"t\xff", "t\xff\xff"}},
		{"t\xff", "t\xff", []string{"t\xff\xff"}},
		{"\xff", "", []string{"\xff", "\xff\xff/1"}},
		{"\xff\xff", "", []string{"\xff\xff/1"}},
		{"\xff", "u", []string{"\xff", "\xff\xff/1"}},
		{strings.Repeat("t", 2*replay.MaxName), "", nil},
	} {
		var want []replay.Entry
		for _, log := range test.want {
			want = append(want, replay.Entry{Log: log, Head: heads[log]})
		}
		e.wantList(s, test.prefix, test.after, want...)
	}
	for entry, err := range s.List(e.Context(), "t", "") {
		if err != nil || entry.Log != "t" {
			e.Errorf("the first one is %q, %v", entry.Log, err)
		}
		break
	}
	if e.Bubble {
		e.wantDropped(s, "t/a/1", time.Minute)
		e.wantList(s, "t/a", "", replay.Entry{Log: "t/a", Head: heads["t/a"]})
	}
}

// testListPages lists more logs than a driver may read at a time, among as many others, from anywhere on.
func testListPages(e *env) {
	s := e.store(replay.Settings{})
	const n = 1024 // whole pages, as a driver may have them
	entries := make([]replay.Entry, n)
	for i := range n {
		entries[i] = replay.Entry{Log: fmt.Sprintf("t%04d", i), Head: replay.Head{First: 1, Metadata: fmt.Append(nil, i)}}
	}
	e.each(n, func(i int) {
		i = i * 389 % n // not in their order
		for _, class := range []string{"s", "t", "u"} {
			e.append(s, replay.Append{Log: class + entries[i].Log[1:], Metadata: entries[i].Head.Metadata})
		}
	})
	for _, from := range []int{0, 1, 255, 256, 257, 511, 512, 700, n - 1, n} {
		after := ""
		if from > 0 {
			after = entries[from-1].Log
		}
		e.wantList(s, "t", after, entries[from:]...)
	}
}

// testListMetadata lists logs with large metadata, each of another size.
func testListMetadata(e *env) {
	s := e.store(replay.Settings{})
	var want []replay.Entry
	for i := range 40 {
		note := slices.Repeat([]byte{byte(i)}, i*1500)
		log := fmt.Sprintf("t%02d", i)
		e.append(s, replay.Append{Log: log, Metadata: note})
		want = append(want, replay.Entry{Log: log, Head: replay.Head{Revision: 1, First: 1, Metadata: note}})
	}
	var got []replay.Entry // kept until all have been seen: metadata belong to the caller
	for entry, err := range s.List(e.Context(), "t", "") {
		if err != nil {
			e.Fatal(err)
		}
		e.append(s, replay.Append{Log: entry.Log, Metadata: []byte("replaced")})
		got = append(got, entry)
	}
	if !slices.EqualFunc(want, got, sameEntry) {
		for i := range got { // a difference of metadata would be a long one
			e.Logf("%q, %d bytes of %d", got[i].Log, len(got[i].Head.Metadata),
				got[i].Head.Metadata[:min(1, len(got[i].Head.Metadata))])
		}
		e.Errorf("these are not the %d logs with their metadata", len(want))
	}
}

// testListLive lists while logs are made, appended to and dropped. Lasting logs are all listed, once, in order, and
// with the writes of the round before.
func testListLive(e *env) {
	const retention = time.Millisecond // in real time, logs are dropped all the while
	s := e.store(replay.Settings{Retention: retention})
	const n = 600
	name := func(i int) string { return fmt.Sprintf("t%04d", i) }
	e.each(n, func(i int) { e.append(s, replay.Append{Log: name(i), Records: [][]byte{{1}}}) })
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range e.times(1000) {
				log := fmt.Sprintf("t%04d-%d-%d", i*7%n, w, i) // between the lasting logs
				if err := s.Append(ctx, replay.Append{Log: log, Records: [][]byte{{1}}, End: true}); err != nil {
					e.Errorf("Append: %v", err)
					return
				}
			}
		})
	}
	for round := range uint64(3) {
		stayed, before := 0, ""
		for entry, err := range s.List(e.Context(), "t", "") {
			if err != nil {
				e.Fatalf("List: %v", err)
			}
			if entry.Log <= before {
				e.Fatalf("%q comes after %q", entry.Log, before)
			}
			before = entry.Log
			if len(entry.Log) > len(name(0)) {
				continue
			}
			if want := name(stayed); entry.Log != want || entry.Head.Last != round+1 {
				e.Fatalf("round %d: %q with %d records, want %q", round, entry.Log, entry.Head.Last, want)
			}
			stayed++
			// It was listed, so this is not seen before the next round.
			e.append(s, replay.Append{Log: entry.Log, Records: [][]byte{{1}}})
		}
		if stayed != n {
			e.Errorf("round %d: %d logs, want %d", round, stayed, n)
		}
	}
	wg.Wait()

	stayed := 0
	for entry, err := range s.List(e.Context(), "t", "") {
		if err != nil {
			e.Fatalf("List: %v", err)
		}
		if len(entry.Log) > len(name(0)) {
			continue
		}
		if stayed++; stayed == 10 {
			e.pass(retention + slack) // all the others are dropped now
		}
	}
	if stayed != n {
		e.Errorf("while logs were dropped: %d logs, want %d", stayed, n)
	}
}
