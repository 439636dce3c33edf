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

// testListed puts logs into lists, moves them, and takes them out in each way.
func testListed(e *env) {
	s := e.store(replay.Settings{Retention: e.minute()})
	at := func(n int64) time.Time { return time.Unix(1_800_000_000+n, n) }
	in := func(log string, n int64, label string) replay.ListedLog {
		return replay.ListedLog{Log: log, At: at(n), Label: label}
	}
	var none replay.ListedLog
	e.wantListed(s, "list", none)
	r := data(numbered("r", 1, 3))
	for _, a := range []replay.Append{
		{Log: "a", Lists: []replay.Listing{{List: "list", At: at(1), Label: "first"}, {List: "other", At: at(9)}}},
		{Log: "b", Records: r, Lists: []replay.Listing{{List: "list", At: at(3)}}},
		{Log: "c", Records: r[:1], End: true, Lists: []replay.Listing{{List: "list", At: at(2)}}},
		{Log: "d", Lists: []replay.Listing{{List: "list", At: at(2), Label: strings.Repeat("l", replay.MaxLabel)}}},
		{Log: "e", Intent: true, DueAt: replay.Recover, Lists: []replay.Listing{{List: "list"}, {List: "pending"}}},
		{Log: "f", Lists: []replay.Listing{{List: "list\x00", At: at(8)}, {List: "lis", At: at(8)},
			{List: strings.Repeat("n", replay.MaxName), At: at(8)}, {List: "\xff", At: at(8)}}},
		{Log: "g", Records: r},
	} {
		e.append(s, a)
	}
	label := strings.Repeat("l", replay.MaxLabel)
	all := []replay.ListedLog{in("b", 3, ""), in("c", 2, ""), in("d", 2, label), in("a", 1, "first"), {Log: "e"}}
	for i := range all {
		e.wantListed(s, "list", all[i], all[i+1:]...)
	}
	for after, want := range map[replay.ListedLog][]replay.ListedLog{
		none:               all,
		in("z", 9, ""):     all, // before all of them
		in("a", 3, ""):     all,
		in("c\x00", 2, ""): all[2:],
		in("a", 2, ""):     all[1:],
		in("z", 1, ""):     all[4:],
		{Log: "z"}:         nil,
	} {
		e.wantListed(s, "list", after, want...)
	}
	e.wantListed(s, "other", none, in("a", 9, ""))
	e.wantListed(s, "pending", none, replay.ListedLog{Log: "e"})
	for _, list := range []string{"list\x00", "lis", strings.Repeat("n", replay.MaxName), "\xff"} {
		e.wantListed(s, list, none, in("f", 8, ""))
	}
	for _, list := range []string{"", "l", "list\x00\x00", "\xff\xff", strings.Repeat("n", replay.MaxName+1)} {
		e.wantListed(s, list, none)
	}
	if h, err := s.Head(e.Context(), "a"); err != nil || len(h.Lists) != 2 || h.Lists[0].Label != "first" {
		e.Errorf("the head of a is %+v, %v", h, err)
	}

	for _, a := range []replay.Append{
		{Log: "a", Lists: []replay.Listing{{List: "list", At: at(7), Label: "again"}}}, // moves, and leaves the other
		{Log: "b", Drop: true},
		{Log: "d", Lists: []replay.Listing{{List: "list", At: at(2), Label: "another"}}}, // stays, with another label
		{Log: "e", DueAt: replay.Recover, Lists: []replay.Listing{{List: "list", At: at(6)}}},
		{Log: "f"},
	} {
		e.append(s, a)
	}
	moved := []replay.ListedLog{in("a", 7, "again"), in("e", 6, ""), in("c", 2, ""), in("d", 2, "another")}
	check := func() {
		e.Helper()
		e.wantListed(s, "list", none, moved...)
		for _, list := range []string{"other", "pending", "lis", "\xff"} {
			e.wantListed(s, list, none)
		}
	}
	check()
	e.append(s, replay.Append{Log: "i", Intent: true, Lists: []replay.Listing{{List: "list", At: at(1), Label: "intent"}}})
	moved = append(moved, in("i", 1, "intent"))
	check()
	if e.Reopen != nil {
		s = e.Reopen(e.T, s, replay.Settings{Retention: e.minute()})
		e.Cleanup(func() { _ = s.Close() }) // the suite closes the one before
		check()
	}
	e.append(s, replay.Append{Log: "i", Drop: true})
	moved = moved[:4]
	check()
	for name, lists := range map[string][]replay.Listing{
		"no name":       {{}},
		"a long name":   {{List: strings.Repeat("n", replay.MaxName+1)}},
		"a long label":  {{List: "list", Label: label + "l"}},
		"twice":         {{List: "list", At: at(1)}, {List: "list", At: at(2)}},
		"too many ones": slices.Repeat([]replay.Listing{{List: "list"}}, replay.MaxLists+1),
	} {
		a := replay.Append{Log: "a", Expect: e.appended["a"].revision, Lists: lists}
		if err := s.Append(e.Context(), a); err == nil || errors.Is(err, replay.ErrConflict) {
			e.Errorf("%s: the error of the append is %v", name, err)
		}
	}
	check()
	for l, err := range s.Listed(e.Context(), "list", none) {
		if err != nil || l.Log != "a" {
			e.Errorf("the first one is %q, %v", l.Log, err)
		}
		break
	}
	if e.Bubble { // a log dropped after its retention leaves its lists
		e.pass(time.Minute + slack)
		moved = slices.Delete(moved, 2, 3)
		check()
	}
}

// testListedPages has more logs in a list than a driver may read at a time, among as many in others.
func testListedPages(e *env) {
	s := e.store(replay.Settings{})
	const n = 1024 // whole pages, as a driver may have them
	listed := make([]replay.ListedLog, n)
	for i := range n {
		listed[i] = replay.ListedLog{Log: fmt.Sprintf("t%04d", i*389%n), At: time.Unix(int64((n-i)/3+1), 0)}
	}
	slices.SortFunc(listed, replay.ListedLog.Compare)
	e.each(n, func(i int) {
		i = i * 211 % n // not in their order
		for _, list := range []string{"a", "b", "c"} {
			e.append(s, replay.Append{Log: list + listed[i].Log, Intent: i%5 == 0,
				Lists: []replay.Listing{{List: list, At: listed[i].At}}})
		}
	})
	for i := range listed {
		listed[i].Log = "b" + listed[i].Log
	}
	for _, from := range []int{0, 1, 127, 128, 129, 255, 256, 257, 511, 512, 700, n - 1, n} {
		var after replay.ListedLog
		if from > 0 {
			after = listed[from-1]
		}
		e.wantListed(s, "b", after, listed[from:]...)
	}
}

// testListedLive reads a list while other logs of it are made, moved and dropped. Lasting ones are all read, once, in
// order.
func testListedLive(e *env) {
	s := e.store(replay.Settings{})
	const n = 600
	e.each(n, func(i int) {
		e.append(s, replay.Append{Log: fmt.Sprintf("stay%04d", i),
			Lists: []replay.Listing{{List: "list", At: time.Unix(int64(2*i+2), 0)}}})
	})
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range e.times(1000) {
				a := replay.Append{Log: fmt.Sprintf("move%d", w), Expect: uint64(i % 10), Drop: i%10 == 9,
					Lists: []replay.Listing{{List: "list", At: time.Unix(int64(i*7%(2*n)|1), 0)}}}
				if err := s.Append(ctx, a); err != nil {
					e.Errorf("Append: %v", err)
					return
				}
			}
		})
	}
	for range 3 {
		stayed := n
		var before replay.ListedLog
		for l, err := range s.Listed(e.Context(), "list", before) {
			if err != nil {
				e.Fatalf("Listed: %v", err)
			}
			if before.Log != "" && before.Compare(l) >= 0 {
				e.Fatalf("%+v comes after %+v", l, before)
			}
			before = l
			if !strings.HasPrefix(l.Log, "stay") {
				continue
			}
			if stayed--; l.Log != fmt.Sprintf("stay%04d", stayed) {
				e.Fatalf("%q, want number %d", l.Log, stayed)
			}
		}
		if stayed != 0 {
			e.Errorf("%d logs are missing", stayed)
		}
	}
	wg.Wait()
}
