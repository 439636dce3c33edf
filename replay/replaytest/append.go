// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// testAppend writes a log step by step, and loads it after each.
func testAppend(e *env) {
	s := e.store(replay.Settings{})
	e.wantNotFound(s, "a")
	at := time.Now().Add(time.Hour).Round(0)
	r := numbered("a", 1, 6)
	for _, step := range []struct {
		append replay.Append
		want   state
	}{
		{
			replay.Append{Metadata: []byte("new"), DueAt: replay.Recover},
			state{Head: replay.Head{First: 1, Metadata: []byte("new"), DueAt: replay.Recover}},
		}, {
			replay.Append{Records: data(r[:3]), Metadata: []byte("three"), DueAt: at, Durable: true},
			state{replay.Head{First: 1, Last: 3, Bytes: size(r[:3]), Metadata: []byte("three"), DueAt: at}, nil, r[:3]},
		}, {
			replay.Append{Metadata: []byte("note alone, and longer than the one before")},
			state{replay.Head{First: 1, Last: 3, Bytes: size(r[:3]),
				Metadata: []byte("note alone, and longer than the one before")}, nil, r[:3]},
		}, {
			replay.Append{Records: data(r[3:4]), DueAt: at},
			state{replay.Head{First: 1, Last: 4, Bytes: size(r[:4]), DueAt: at}, nil, r[:4]},
		}, {
			replay.Append{Records: data(r[4:]), Metadata: []byte("end"), End: true, Durable: true},
			state{replay.Head{First: 1, Last: 6, Bytes: size(r), Metadata: []byte("end"), Ended: at}, nil, r},
		},
	} {
		before := time.Now()
		step.append.Log = "a"
		e.append(s, step.append)
		e.wantLoad(s, "a", step.want)
		h, _, _, _ := s.Load(e.Context(), "a")
		if step.append.End && (h.Ended.Before(before.Add(-time.Microsecond)) || h.Ended.After(time.Now())) {
			e.Errorf("the log ended at %v, not between %v and now", h.Ended, before)
		}
	}
}

// testRefused makes appends without effect.
func testRefused(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("a", 1, 2)
	e.append(s, replay.Append{Log: "a", Records: data(r[:1])})
	e.append(s, replay.Append{Log: "a", Records: data(r[1:]), Metadata: []byte("n")})
	e.append(s, replay.Append{Log: "ended", Records: data(r), End: true})
	e.append(s, replay.Append{Log: "empty and ended", End: true})
	open := state{replay.Head{First: 1, Last: 2, Bytes: size(r), Metadata: []byte("n")}, nil, r}
	ended := state{replay.Head{First: 1, Last: 2, Bytes: size(r), Ended: time.Now()}, nil, r}
	for _, test := range []struct {
		name     string
		append   replay.Append
		conflict bool
	}{
		{"behind", replay.Append{Log: "a", Expect: 1, Records: data(r)}, true},
		{"ahead", replay.Append{Log: "a", Expect: 3, Records: data(r)}, true},
		{"new", replay.Append{Log: "a", Records: data(r)}, true},
		{"note alone", replay.Append{Log: "a", Expect: 1, Metadata: []byte("x")}, true},
		{"end", replay.Append{Log: "a", Expect: 1, End: true}, true},
		{"drop", replay.Append{Log: "a", Expect: 1, Drop: true}, true},
		{"drop of none", replay.Append{Log: "a", Drop: true}, true},
		{"intent", replay.Append{Log: "a", Intent: true}, true},
		{"unknown log", replay.Append{Log: "b", Expect: 1, Records: data(r)}, true},
		{"ended", replay.Append{Log: "ended", Expect: 1, Records: data(r)}, true},
		{"ended, note alone", replay.Append{Log: "ended", Expect: 1, Metadata: []byte("x")}, true},
		{"ended, again", replay.Append{Log: "ended", Expect: 1, End: true}, true},
		{"ended without records", replay.Append{Log: "empty and ended", Expect: 1, Records: data(r)}, true},
		{"trim ahead", replay.Append{Log: "a", Expect: 2, Records: data(r), Trim: 5}, false},
		{"no name", replay.Append{Records: data(r)}, false},
		{"long name", replay.Append{Log: strings.Repeat("x", replay.MaxName+1), Records: data(r)}, false},
	} {
		err := s.Append(e.Context(), test.append)
		if err == nil || errors.Is(err, replay.ErrConflict) != test.conflict {
			e.Errorf("%s: error %v; ErrConflict should be %t", test.name, err, test.conflict)
		}
	}
	e.wantLoad(s, "a", open)
	e.wantLoad(s, "ended", ended)
	for _, log := range []string{"b", "", strings.Repeat("x", replay.MaxName+1)} {
		e.wantNotFound(s, log)
	}
}

// testNames has logs with names that are a part of each other, or look like a driver's separators.
func testNames(e *env) {
	s := e.store(replay.Settings{})
	names := []string{
		"a", "aa", "a\x00", "a\x00\x00", "\x00", "\x00\x01", "\x02", "\xff", "\xff\xff", "a/b", "a.b", "a b", "*", ">", "ä",
		"\xc3",
		strings.Repeat("x", replay.MaxName-1), strings.Repeat("x", replay.MaxName), strings.Repeat("\xff", replay.MaxName),
		"A",
	}
	for i, log := range names {
		e.append(s, replay.Append{Log: log, Records: data(numbered(log, 1, i+1)), DueAt: time.Unix(int64(i+1), 0)})
	}
	for i, log := range names {
		r := numbered(log, 1, i+1)
		e.wantLoad(s, log, state{replay.Head{First: 1, Last: uint64(i + 1), Bytes: size(r), DueAt: time.Unix(int64(i+1), 0)},
			nil, r})
	}
	due := make(map[byte][]replay.DueLog)
	for i, log := range names {
		due[log[0]] = append(due[log[0]], replay.DueLog{Log: log, At: time.Unix(int64(i+1), 0)})
	}
	for class := range 256 {
		e.wantDue(s, byte(class), time.Unix(1, 0), time.Unix(int64(len(names)), 0), due[byte(class)]...)
	}
	sorted := slices.Sorted(slices.Values(names))
	entry := func(log string) replay.Entry {
		i := slices.Index(names, log)
		r := numbered(log, 1, i+1)
		return replay.Entry{Log: log, Head: replay.Head{First: 1, Last: uint64(i + 1), Bytes: size(r),
			DueAt: time.Unix(int64(i+1), 0)}}
	}
	for i, after := range append([]string{""}, sorted...) {
		var all []replay.Entry
		begin := make(map[string][]replay.Entry) // by prefix
		for _, log := range sorted[i:] {
			all = append(all, entry(log))
			for _, prefix := range sorted {
				if strings.HasPrefix(log, prefix) {
					begin[prefix] = append(begin[prefix], entry(log))
				}
			}
		}
		e.wantList(s, "", after, all...)
		for _, prefix := range sorted {
			e.wantList(s, prefix, after, begin[prefix]...)
		}
	}
	for i, log := range names {
		e.append(s, replay.Append{Log: log, End: true})
		e.wantFollow(s, log, 0, numbered(log, 1, i+1))
	}
}

// testBuffers overwrites the buffers given to the store.
func testBuffers(e *env) {
	s := e.store(replay.Settings{})
	buf := []byte("note/one/two/snapshot")
	e.append(s, replay.Append{Log: "a", Metadata: buf[:4], Records: [][]byte{buf[5:8], buf[9:12]}, Trim: 1,
		Snapshot: buf[13:]})
	copy(buf, "XXXXXXXXXXXXXXXXXXXXXXXXXXX")
	want := state{
		replay.Head{First: 2, Last: 2, Bytes: 3, Metadata: []byte("note")}, []byte("snapshot"),
		[]replay.Record{{Seq: 2, Data: []byte("two")}},
	}
	e.wantLoad(s, "a", want)
	copy(buf, "note")
	e.append(s, replay.Append{Log: "i", Metadata: buf[:4], Intent: true})
	copy(buf, "XXXX")
	e.wantLoad(s, "i", state{Head: replay.Head{First: 1, Metadata: []byte("note")}})
	e.append(s, replay.Append{Log: "b", Records: [][]byte{nil, {}}}) // records may be empty
	e.wantLoad(s, "b", state{replay.Head{First: 1, Last: 2}, nil, []replay.Record{{Seq: 1}, {Seq: 2}}})
}

// testCreators has many writers make the same logs; one of them makes each.
func testCreators(e *env) {
	s := e.store(replay.Settings{})
	const writers, logs = 8, 20
	var won [logs]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range logs {
				err := s.Append(ctx, replay.Append{Log: fmt.Sprint(i), Records: [][]byte{{byte(w)}}})
				switch {
				case err == nil:
					mu.Lock()
					won[i]++
					mu.Unlock()
				case !errors.Is(err, replay.ErrConflict):
					e.Errorf("Append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i, n := range won {
		if n != 1 {
			e.Errorf("log %d was made by %d writers", i, n)
		}
		h, _, r, err := s.Load(e.Context(), fmt.Sprint(i))
		if err != nil || h.Last != 1 || len(r) != 1 {
			e.Errorf("log %d: %+v, %d records, %v", i, h, len(r), err)
		}
	}
}

// testWriters has many writers append to one log, each as often as it takes. No record is lost or doubled.
func testWriters(e *env) {
	s := e.store(replay.Settings{})
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			var revision uint64
			for i := 0; i < each; {
				record := fmt.Appendf(nil, "%d/%d", w, i)
				err := s.Append(ctx, replay.Append{Log: "a", Expect: revision, Records: [][]byte{record, record},
					Metadata: record, Durable: i%5 == 0})
				switch {
				case err == nil:
					revision++
					i++
				case errors.Is(err, replay.ErrConflict):
					h, _, _, err := s.Load(ctx, "a")
					if err != nil {
						e.Errorf("Load: %v", err)
						return
					}
					revision = h.Revision
				default:
					e.Errorf("Append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	h, _, records, err := s.Load(e.Context(), "a")
	if err != nil {
		e.Fatal(err)
	}
	if want := uint64(2 * writers * each); h.Last != want || len(records) != int(want) || h.Bytes != size(records) {
		e.Fatalf("%d records of %d bytes, head %+v, want %d", len(records), size(records), h, want)
	}
	next := make(map[string]int)
	for i, r := range records {
		if r.Seq != uint64(i+1) {
			e.Fatalf("record %d has number %d", i, r.Seq)
		}
		w, _, _ := strings.Cut(string(r.Data), "/")
		if want := fmt.Sprintf("%s/%d", w, next[w]/2); string(r.Data) != want {
			e.Fatalf("record %d is %q, want %q", r.Seq, r.Data, want)
		}
		next[w]++
	}
	if d := cmp.Diff(string(records[len(records)-1].Data), string(h.Metadata)); d != "" {
		e.Errorf("metadata of another append than the last record (-record +metadata):\n%s", d)
	}
}

// testTrim drops records behind a snapshot.
func testTrim(e *env) {
	s := e.store(replay.Settings{})
	r := numbered("a", 1, 60)
	for _, step := range []struct {
		name     string
		from, to int // of r
		trim     uint64
		first    uint64
		snapshot string // the one to be found afterwards
	}{
		{"none", 0, 20, 0, 1, ""},
		{"some", 20, 22, 5, 6, "to 5"},
		{"records that are gone", 22, 24, 3, 6, "to 5"},
		{"the same", 24, 24, 5, 6, "to 5"},
		{"without records", 24, 24, 6, 7, "to 6"},
		{"many", 24, 50, 45, 46, "to 45"},
		{"old and new", 50, 55, 53, 54, "to 53"},
		{"all", 55, 58, 58, 59, "to 58"},
		{"all again", 58, 58, 58, 59, "to 58"},
		{"all that is new", 58, 60, 60, 61, "to 60"},
	} {
		e.append(s, replay.Append{
			Log: "a", Records: data(r[step.from:step.to]), Trim: step.trim,
			Snapshot: fmt.Appendf(nil, "to %d", step.trim),
		})
		kept := r[step.first-1 : step.to]
		e.Log(step.name)
		e.wantLoad(s, "a", state{
			replay.Head{First: step.first, Last: uint64(step.to), Bytes: size(kept)}, []byte(step.snapshot), kept,
		})
	}
	// A log may begin with a snapshot.
	b := numbered("b", 1, 3)
	e.append(s, replay.Append{Log: "b", Records: data(b), Trim: 2, Snapshot: []byte("s")})
	e.wantLoad(s, "b", state{replay.Head{First: 3, Last: 3, Bytes: size(b[2:])}, []byte("s"), b[2:]})
}

// testSkip leaves numbers out, follows a log across them, and asks for the numbers between.
func testSkip(e *env) {
	s := e.store(replay.Settings{})
	a, b, c := numbered("a", 1, 3), numbered("a", 14, 2), numbered("a", 17, 1)
	all := slices.Concat(a, b, c)
	e.append(s, replay.Append{Log: "a", Records: data(a)})
	e.append(s, replay.Append{Log: "a", Metadata: []byte("no records"), Skip: 5})
	e.wantLoad(s, "a", state{replay.Head{First: 1, Last: 3, Bytes: size(a), Metadata: []byte("no records")}, nil, a})
	e.append(s, replay.Append{Log: "a", Records: data(b), Skip: 10})
	e.append(s, replay.Append{Log: "a", Records: data(c), Skip: 1})
	gaps := []replay.Gap{{From: 4, To: 13}, {From: 16, To: 16}}
	e.wantLoad(s, "a", state{replay.Head{First: 1, Last: 17, Bytes: size(all), Gaps: gaps}, nil, all})
	e.append(s, replay.Append{Log: "a", End: true})
	for after, want := range map[uint64][]replay.Record{
		0: all, 2: all[2:], 3: all[3:], 13: all[3:], 14: all[4:], 15: all[5:], 16: all[5:], 17: nil,
	} {
		e.wantFollow(s, "a", after, want)
	}
	for after := uint64(4); after < 13; after++ {
		_, err := follow(replay.Follow(e.Context(), s, "a", after, nil))
		if d := cmp.Diff(&replay.CompactedError{After: after, First: 14, Last: 17}, err); d != "" {
			e.Errorf("Follow(%d) (-want +got):\n%s", after, d)
		}
	}

	// A new log may begin with left-out numbers, and the oldest records may go up to a gap, or with it.
	e.append(s, replay.Append{Log: "b", Records: data(c), Skip: 16})
	e.wantLoad(s, "b", state{replay.Head{First: 1, Last: 17, Bytes: size(c), Gaps: []replay.Gap{{From: 1, To: 16}}}, nil,
		c})
	for trim, want := range map[uint64]state{
		3:  {replay.Head{First: 4, Last: 17, Bytes: size(all[3:]), Gaps: gaps}, []byte("s"), all[3:]},
		7:  {replay.Head{First: 8, Last: 17, Bytes: size(all[3:]), Gaps: gaps}, []byte("s"), all[3:]},
		13: {replay.Head{First: 14, Last: 17, Bytes: size(all[3:]), Gaps: gaps[1:]}, []byte("s"), all[3:]},
		16: {replay.Head{First: 17, Last: 17, Bytes: size(c)}, []byte("s"), c},
	} {
		log := fmt.Sprint(trim)
		e.append(s, replay.Append{Log: log, Records: data(a)})
		e.append(s, replay.Append{Log: log, Records: data(b), Skip: 10})
		e.append(s, replay.Append{Log: log, Records: data(c), Skip: 1, Trim: trim, Snapshot: []byte("s")})
		e.wantLoad(s, log, want)
	}
}
