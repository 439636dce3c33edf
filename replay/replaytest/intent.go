// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testIntent begins logs by intents, and continues them in each way.
func testIntent(e *env) {
	s := e.store(replay.Settings{Retention: e.minute()})
	at := time.Unix(1_800_000_000, 0)
	metadata := []byte("pending")
	pending := replay.Head{First: 1, Metadata: metadata, DueAt: replay.Recover}
	intent := func(log string) replay.Append {
		return replay.Append{Log: log, Metadata: metadata, DueAt: replay.Recover, Intent: true}
	}
	logs := []string{"a", "b", "c", "d", "e"}
	for _, log := range logs {
		e.wantNotFound(s, log)
		e.append(s, intent(log))
		e.wantLoad(s, log, state{Head: pending})
		e.wantDue(s, log[0], replay.Recover, replay.Recover, replay.DueLog{Log: log, At: replay.Recover})
		e.wantDue(s, log[0], replay.Recover.Add(1), replay.EndOfTime)
		for _, revision := range []uint64{0, 2} {
			a := replay.Append{Log: log, Expect: revision, Intent: true}
			if err := s.Append(e.Context(), a); !errors.Is(err, replay.ErrConflict) {
				e.Errorf("Append to %s at revision %d: %v, want ErrConflict", log, revision, err)
			}
		}
	}
	entries := func(heads ...replay.Head) (entries []replay.Entry) {
		for i, h := range heads {
			entries = append(entries, replay.Entry{Log: logs[i], Head: h})
		}
		return entries
	}
	e.wantList(s, "", "", entries(pending, pending, pending, pending, pending)...)
	e.wantList(s, "c", "", entries(pending, pending, pending)[2])
	e.wantList(s, "", "d", entries(pending, pending, pending, pending, pending)[4])

	r := numbered("a", 1, 3)
	a := replay.Head{First: 1, Last: 3, Bytes: size(r), Metadata: []byte("settled"), DueAt: at}
	e.append(s, replay.Append{Log: "a", Records: data(r), Metadata: a.Metadata, DueAt: at, Durable: true})
	b := replay.Head{First: 1, Metadata: []byte("still pending"), DueAt: replay.Recover} // as a second intent
	second := intent("b")
	second.Metadata = b.Metadata
	e.append(s, second)
	c := replay.Head{First: 1, Last: 3, Bytes: size(r), Ended: time.Now()}
	e.append(s, replay.Append{Log: "c", Records: data(r), End: true})
	d := replay.Head{First: 1, Ended: time.Now()}
	e.append(s, replay.Append{Log: "d", End: true})
	check := func() {
		e.Helper()
		e.wantLoad(s, "a", state{a, nil, r})
		e.wantLoad(s, "b", state{Head: b})
		e.wantLoad(s, "c", state{c, nil, r})
		e.wantLoad(s, "d", state{Head: d})
		e.wantLoad(s, "e", state{Head: pending})
		e.wantList(s, "", "", entries(a, b, c, d, pending)...)
		e.wantDue(s, 'a', replay.Recover, replay.EndOfTime, replay.DueLog{Log: "a", At: at})
		e.wantDue(s, 'b', replay.Recover, replay.EndOfTime, replay.DueLog{Log: "b", At: replay.Recover})
		e.wantDue(s, 'c', replay.Recover, replay.EndOfTime)
		e.wantDue(s, 'e', replay.Recover, replay.EndOfTime, replay.DueLog{Log: "e", At: replay.Recover})
	}
	check()
	e.wantFollow(s, "c", 0, r)
	if e.Reopen != nil {
		s = e.Reopen(e.T, s, replay.Settings{Retention: e.minute()})
		e.Cleanup(func() { _ = s.Close() }) // the suite closes the one before
		check()
	}

	// Appends that are no intents: with records, with an end, or to a log that exists.
	for i, x := range []replay.Append{
		{Log: "x0", Intent: true, Records: data(r)}, {Log: "x1", Intent: true, Records: data(r), Trim: 2},
		{Log: "x2", Intent: true, End: true}, {Log: "x3", Intent: true, Durable: true},
		{Log: "x4", Intent: true, Metadata: make([]byte, 100_000)},
	} {
		e.append(s, x)
		h, _, records, err := s.Load(e.Context(), fmt.Sprint("x", i))
		if err != nil || h.Last != uint64(len(x.Records)) || len(records) != len(x.Records)-int(x.Trim) ||
			h.Ended.IsZero() == x.End || len(h.Metadata) != len(x.Metadata) {
			e.Errorf("%+.100v became %+.100v with %d records, %v", x, h, len(records), err)
		}
	}
	if e.Bubble {
		e.pass(time.Minute + slack)
		e.wantNotFound(s, "c") // neither is brought back by its first intent
		e.wantNotFound(s, "d")
		e.wantLoad(s, "e", state{Head: pending})
		e.append(s, intent("c"))
		e.wantLoad(s, "c", state{Head: pending})
	}
}

// testIntentMany has more intents at a time than a driver may have room for, among other logs, in pages.
func testIntentMany(e *env) {
	s := e.store(replay.Settings{})
	const logs = 3000
	var due []replay.DueLog
	var entries []replay.Entry
	appends := make([]replay.Append, logs)
	for i := range logs {
		a := replay.Append{Log: fmt.Sprintf("t%04d", i), Metadata: fmt.Append(nil, i), DueAt: replay.Recover, Intent: i%3 > 0}
		if i%7 == 0 {
			a.DueAt = time.Unix(9, 0)
		} else {
			due = append(due, replay.DueLog{Log: a.Log, At: replay.Recover})
		}
		appends[i] = a
		entries = append(entries, replay.Entry{Log: a.Log,
			Head: replay.Head{First: 1, Metadata: a.Metadata, DueAt: a.DueAt}})
	}
	e.each(logs, func(i int) { e.append(s, appends[i]) })
	for i := 0; i < logs; i += 7 {
		due = append(due, replay.DueLog{Log: entries[i].Log, At: time.Unix(9, 0)})
	}
	e.wantList(s, "t", "", entries...)
	e.wantList(s, "", "t1234", entries[1235:]...)
	e.wantDue(s, 't', replay.Recover, time.Unix(9, 0), due...)
	e.wantDue(s, 't', time.Unix(9, 0), time.Unix(9, 0), due[len(due)-(logs+6)/7:]...)
	e.each(logs, func(i int) {
		if i%2 == 0 {
			e.append(s, replay.Append{Log: entries[i].Log, Records: [][]byte{{1}}})
			entries[i].Head = replay.Head{First: 1, Last: 1, Bytes: 1}
		}
	})
	e.wantList(s, "t", "", entries...)
}
