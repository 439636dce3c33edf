// SPDX-License-Identifier: Apache-2.0

package replaytest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// modelNames are the names of the logs: three classes, and names beginning others.
var modelNames = []string{"a", "a\x00", "aa", "aa1", "aa2", "ab", "a\xff", "a\xff\xff", "b", "ba", "c1", "c2"}

// modelLists are the names of the lists, likewise.
var modelLists = []string{"a", "a\x00", "aa"}

// model is the expected content of a store.
type model map[string]*modelLog

type modelLog struct {
	state
	expires time.Time
}

// testModel does random things to a store and to a model of it, and compares.
func testModel(e *env) {
	seed := rand.Uint64()
	e.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const steps, retention = 2000, time.Hour // outside of a bubble no log is dropped
	settings := replay.Settings{Retention: retention}
	s := e.openNew(settings)
	defer func() {
		if err := s.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	}()
	m := make(model)
	for step := range steps {
		log := modelNames[rnd.IntN(len(modelNames))]
		switch n := rnd.IntN(100); {
		case n < 60:
			m.append(e, s, rnd, log, retention)
		case n < 75:
			m.load(e, s, log)
		case n < 85:
			m.follow(e, s, rnd, log)
		case n < 89:
			m.due(e, s, log[0], time.Unix(int64(rnd.IntN(20)), 0), time.Unix(int64(rnd.IntN(20)), 0))
		case n < 92:
			after := modelNames[rnd.IntN(len(modelNames))]
			m.list(e, s, log[:rnd.IntN(len(log)+1)], after[:rnd.IntN(len(after)+1)])
		case n < 94:
			m.listed(e, s, modelLists[rnd.IntN(len(modelLists))],
				replay.ListedLog{Log: log, At: time.Unix(int64(rnd.IntN(20)), 0)})
		case n < 95 && e.Reopen != nil:
			s = e.Reopen(e.T, s, settings)
		case n < 98:
			e.pass(time.Duration(rnd.Int64N(int64(retention / 10))))
			for m.expire() {
				e.pass(slack)
			}
		default:
			for log := range m {
				m.load(e, s, log)
			}
			for class := byte('a'); class <= 'd'; class++ {
				m.due(e, s, class, replay.Recover, time.Unix(100, 0))
			}
			m.list(e, s, "", "")
			for _, list := range modelLists {
				m.listed(e, s, list, replay.ListedLog{})
			}
		}
		if e.Failed() {
			e.Fatalf("at step %d", step)
		}
	}
}

// expire drops all logs due, and returns whether there is one a store may not have dropped yet.
func (m model) expire() (late bool) {
	now := time.Now()
	for name, l := range m {
		if l.Head.Ended.IsZero() || l.expires.After(now) {
			continue
		}
		delete(m, name)
		late = late || l.expires.After(now.Add(-slack))
	}
	return late
}

func (m model) append(e *env, s replay.Store, rnd *rand.Rand, log string, retention time.Duration) {
	l := m[log]
	if l == nil {
		l = &modelLog{state: state{Head: replay.Head{First: 1}}}
	}
	a := replay.Append{Log: log, Expect: l.Head.Revision, Durable: rnd.IntN(10) == 0, End: rnd.IntN(15) == 0,
		Intent: rnd.IntN(3) == 0}
	conflict := !l.Head.Ended.IsZero()
	if l.Head.Revision > 0 && rnd.IntN(8) == 0 {
		a.Expect = rnd.Uint64N(l.Head.Revision)
		conflict = true
	}
	for range rnd.IntN(5) * rnd.IntN(8) {
		record := make([]byte, rnd.IntN(60))
		for i := range record {
			record[i] = byte(rnd.Uint32())
		}
		a.Records = append(a.Records, record)
	}
	if rnd.IntN(2) == 0 {
		a.Metadata = fmt.Append(nil, rnd.Uint32())
	}
	switch rnd.IntN(3) {
	case 0:
		a.DueAt = replay.Recover
	case 1:
		a.DueAt = time.Unix(int64(1+rnd.IntN(18)), int64(rnd.IntN(2)))
	}
	if rnd.IntN(10) == 0 {
		a.Skip = 1 + rnd.Uint64N(20)
	}
	for _, list := range modelLists {
		if rnd.IntN(3) == 0 {
			l := replay.Listing{List: list, At: time.Unix(int64(1+rnd.IntN(18)), int64(rnd.IntN(2)))}
			if rnd.IntN(2) == 0 {
				l.Label = fmt.Sprint(rnd.IntN(3))
			}
			a.Lists = append(a.Lists, l)
		}
	}
	if rnd.IntN(2) == 0 { // a piece of a stream: more records, and nothing else
		a.Metadata, a.DueAt, a.Lists, a.Durable, a.End = l.Head.Metadata, l.Head.DueAt, l.Head.Lists, false, false
	}
	a.Drop = rnd.IntN(20) == 0
	last := l.Head.Last + uint64(len(a.Records))
	if len(a.Records) > 0 {
		last += a.Skip
	}
	if rnd.IntN(5) == 0 && last > 0 {
		a.Trim = rnd.Uint64N(last) + 1
		a.Snapshot = fmt.Append(nil, rnd.Uint32())
	}

	err := s.Append(e.Context(), a)
	if conflict {
		if !errors.Is(err, replay.ErrConflict) {
			e.Errorf("Append to %s at revision %d: %v, want ErrConflict", log, a.Expect, err)
		}
		return
	}
	if err != nil {
		e.Errorf("Append to %s at revision %d: %v", log, a.Expect, err)
		return
	}
	if a.Drop {
		delete(m, log)
		return
	}
	m[log] = l
	l.Head.Revision++
	if len(a.Records) > 0 && a.Skip > 0 {
		l.Head.Gaps = append(slices.Clone(l.Head.Gaps), replay.Gap{From: l.Head.Last + 1, To: l.Head.Last + a.Skip})
		l.Head.Last += a.Skip
	}
	for _, r := range a.Records {
		l.Head.Last++
		l.Records = append(l.Records, replay.Record{Seq: l.Head.Last, Data: r})
	}
	if a.Trim >= l.Head.First {
		l.Records = slices.DeleteFunc(l.Records, func(r replay.Record) bool { return r.Seq <= a.Trim })
		l.Head.First, l.Snapshot = a.Trim+1, a.Snapshot
		l.Head.Gaps = slices.DeleteFunc(slices.Clone(l.Head.Gaps), func(g replay.Gap) bool { return g.To <= a.Trim })
	}
	l.Head.Bytes, l.Head.Metadata, l.Head.DueAt = size(l.Records), a.Metadata, a.DueAt
	l.Head.Lists = a.Lists
	if a.End {
		l.Head.Ended = time.Now()
		l.expires = l.Head.Ended.Add(retention)
	}
}

func (m model) load(e *env, s replay.Store, log string) {
	if l := m[log]; l != nil {
		e.wantLoad(s, log, l.state)
	} else {
		e.wantNotFound(s, log)
	}
}

func (m model) follow(e *env, s replay.Store, rnd *rand.Rand, log string) {
	l := m[log]
	if l == nil {
		if _, err := follow(replay.Follow(e.Context(), s, log, 0, nil)); !errors.Is(err, replay.ErrNotFound) {
			e.Errorf("Follow(%s): %v, want ErrNotFound", log, err)
		}
		return
	}
	after := rnd.Uint64N(l.Head.Last + 2)
	var want []replay.Record
	for _, r := range l.Records {
		if r.Seq > after {
			want = append(want, r)
		}
	}
	if l.Head.Ended.IsZero() && after == l.Head.Last {
		return // it would wait
	}
	left := after >= l.Head.First && slices.ContainsFunc(l.Head.Gaps, func(g replay.Gap) bool {
		return after >= g.From && after < g.To
	})
	if l.Head.Ended.IsZero() && after+1 >= l.Head.First && after < l.Head.Last && !left {
		for r, err := range replay.Follow(e.Context(), s, log, after, nil) { // would wait at the end
			if err != nil || r.Seq != want[0].Seq || string(r.Data) != string(want[0].Data) {
				e.Errorf("Follow(%s, %d): record %d, error %v, want record %d", log, after, r.Seq, err, want[0].Seq)
				return
			}
			if want = want[1:]; len(want) == 0 {
				return
			}
		}
		e.Errorf("Follow(%s, %d): %d records are missing", log, after, len(want))
		return
	}
	got, err := follow(replay.Follow(e.Context(), s, log, after, nil))
	var gone *replay.CompactedError
	var future *replay.FutureError
	switch {
	case after > l.Head.Last:
		if !errors.As(err, &future) {
			e.Errorf("Follow(%s, %d): %v, want a FutureError", log, after, err)
		}
	case after+1 < l.Head.First || left:
		if !errors.As(err, &gone) {
			e.Errorf("Follow(%s, %d): %v, want a GoneError", log, after, err)
		}
	case err != nil || len(got) != len(want):
		e.Errorf("Follow(%s, %d): %d records, %v, want %d", log, after, len(got), err, len(want))
	}
}

func (m model) list(e *env, s replay.Store, prefix, after string) {
	var want []replay.Entry
	for name, l := range m {
		if strings.HasPrefix(name, prefix) && name > after {
			want = append(want, replay.Entry{Log: name, Head: l.Head})
		}
	}
	slices.SortFunc(want, func(a, b replay.Entry) int { return cmp.Compare(a.Log, b.Log) })
	e.wantList(s, prefix, after, want...)
}

func (m model) listed(e *env, s replay.Store, list string, after replay.ListedLog) {
	var want []replay.ListedLog
	for name, l := range m {
		for _, in := range l.Head.Lists {
			at := replay.ListedLog{Log: name, At: in.At, Label: in.Label}
			if in.List == list && (after.Log == "" || after.Compare(at) < 0) {
				want = append(want, at)
			}
		}
	}
	slices.SortFunc(want, replay.ListedLog.Compare)
	e.wantListed(s, list, after, want...)
}

func (m model) due(e *env, s replay.Store, class byte, from, until time.Time) {
	var want []replay.DueLog
	for name, l := range m {
		if at := l.Head.DueAt; name[0] == class && !at.IsZero() && !at.Before(from) && !at.After(until) {
			want = append(want, replay.DueLog{Log: name, At: at})
		}
	}
	slices.SortFunc(want, func(a, b replay.DueLog) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Log, b.Log))
	})
	e.wantDue(s, class, from, until, want...)
}
