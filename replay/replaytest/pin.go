// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testPin ends logs pinned by others: they stay until nothing pins them, but not for longer than the store keeps such
// logs.
func testPin(e *env) {
	if !e.Bubble {
		return // the times are long
	}
	const retention = 3 * time.Hour // more would be more ticks of the store's own
	settings := replay.Settings{Retention: retention, PinFor: 5 * retention}
	s := e.store(settings)
	r := numbered("a", 1, 3)
	pin := func(log string, after uint64, of ...string) {
		a := replay.Append{Log: log}
		for _, name := range of {
			a.Lists = append(a.Lists, replay.Pin(name, after))
		}
		e.append(s, a)
	}
	kept := func(when string, want ...string) {
		e.Helper()
		var got []string
		for entry, err := range s.List(e.Context(), "log", "") {
			if err != nil {
				e.Fatal(err)
			}
			got = append(got, entry.Log)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			e.Fatalf("%s, these logs are kept (-want +got):\n%s", when, diff)
		}
	}
	all := []string{"log dropped", "log ended", "log free", "log long", "log moved", "log of many", "log trimmed"}
	for _, log := range all {
		e.append(s, replay.Append{Log: log, Records: data(r)})
	}
	pin("pin dropped", 1, "log dropped")
	pin("pin ended", 1, "log ended")
	pin("pin long", 1, "log long")
	pin("pin moved", 1, "log moved")
	pin("pin first", 0, "log of many", "log trimmed")
	pin("pin second", 2, "log of many", "log that is not there")
	for _, log := range all {
		a := replay.Append{Log: log, Records: data(r[:1]), End: true}
		if log == "log trimmed" {
			a.Trim, a.Snapshot = 2, []byte("snapshot")
		}
		e.append(s, a)
	}
	e.pass(retention + slack)
	pinned := slices.DeleteFunc(slices.Clone(all), func(log string) bool { return log == "log free" })
	kept("after the retention", pinned...)
	e.wantLoad(s, "log trimmed", state{replay.Head{First: 3, Last: 4, Bytes: size(r[2:]) + size(r[:1]),
		Ended: time.Now()}, []byte("snapshot"), []replay.Record{r[2], {Seq: 4, Data: r[0].Data}}})
	e.wantFollow(s, "log long", 2, []replay.Record{r[2], {Seq: 4, Data: r[0].Data}})
	if err := s.Append(e.Context(), replay.Append{Log: "log long", Expect: 2}); !errors.Is(err, replay.ErrConflict) {
		e.Errorf("an append to a log that has ended: %v", err)
	}
	if e.Reopen != nil {
		s = e.Reopen(e.T, s, settings)
		e.Cleanup(func() { _ = s.Close() }) // the suite closes the one before
		e.pass(retention + slack)
		kept("after it was opened again", pinned...)
	}
	pin("pin moved", 3, "log that is not there")
	e.append(s, replay.Append{Log: "pin dropped", Drop: true})
	e.append(s, replay.Append{Log: "pin ended", End: true})
	pin("pin first", 0)
	e.pass(2 * time.Hour)
	kept("when some are free", "log long", "log of many")
	for log, want := range map[string]uint64{"log long": 1, "log of many": 2} {
		if after, pinned, err := replay.Pinned(e.Context(), s, log); after != want || !pinned || err != nil {
			e.Errorf("%s is pinned from %d on: %v, %v", log, after, pinned, err)
		}
	}
	if _, pinned, err := replay.Pinned(e.Context(), s, "log free"); pinned || err != nil {
		e.Errorf("log free is pinned: %v, %v", pinned, err)
	}
	e.pass(5 * retention)
	kept("after the longest time")
}

// testPinFull ends logs until they take too much: the pinned ones are dropped last.
func testPinFull(e *env) {
	if !e.Bubble {
		return
	}
	const size = 100_000
	settings := replay.Settings{MaxSize: 3*size + size/2}
	s := e.store(settings)
	end := func(log string) {
		e.append(s, replay.Append{Log: log, Records: [][]byte{make([]byte, size)}, End: true})
		e.pass(time.Second)
	}
	for i := range 5 {
		e.append(s, replay.Append{Log: fmt.Sprint("pin", i),
			Lists: []replay.Listing{replay.Pin(fmt.Sprint("pinned", i), 0)}})
	}
	kept := func(want ...string) {
		e.Helper()
		var got []string
		for _, prefix := range []string{"free", "pinned"} {
			for entry, err := range s.List(e.Context(), prefix, "") {
				if err != nil {
					e.Fatal(err)
				}
				got = append(got, entry.Log)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			e.Fatalf("these logs are kept (-want +got):\n%s", diff)
		}
	}
	end("pinned0")
	for i := range 5 {
		end(fmt.Sprint("free", i))
	}
	kept("free3", "free4", "pinned0")
	for i := range 4 {
		end(fmt.Sprint("pinned", i+1))
	}
	kept("pinned2", "pinned3", "pinned4")
	s.Configure(replay.Settings{MaxSize: 1})
	e.pass(time.Second)
	kept()
}
