// SPDX-License-Identifier: Apache-2.0

// Package replaytest is the one suite every replay.Store has to pass.
package replaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// Options are the abilities of a driver.
type Options struct {
	// Bubble marks a driver working in a bubble of testing/synctest. Time is false there, and a goroutine left behind by
	// the driver fails the test.
	Bubble bool

	// Parallel has the tests run at the same time, because the driver waits more than it computes.
	Parallel bool

	// Reopen closes a store and opens it again with the same contents. It is nil for a driver without lasting memory.
	Reopen func(t *testing.T, s replay.Store, settings replay.Settings) replay.Store

	// Break opens an empty store on a disk that takes no changes while it is broken, and returns a function to break and
	// mend the disk. The suite closes the store. It is nil for a driver without a disk.
	Break func(t *testing.T, settings replay.Settings) (s replay.Store, broken func(bool))
}

// Run runs the suite. open returns an empty store; the suite closes it.
func Run(t *testing.T, open func(t *testing.T, s replay.Settings) replay.Store, o Options) {
	for _, test := range []struct {
		name string
		run  func(e *env)
	}{
		{"Append", testAppend},
		{"Refused", testRefused},
		{"Intent", testIntent},
		{"IntentMany", testIntentMany},
		{"Drop", testDrop},
		{"Names", testNames},
		{"Buffers", testBuffers},
		{"Creators", testCreators},
		{"Writers", testWriters},
		{"Rivals", testRivals},
		{"Trim", testTrim},
		{"Skip", testSkip},
		{"Follow", testFollow},
		{"FollowErrors", testFollowErrors},
		{"FollowLive", testFollowLive},
		{"FollowSlow", testFollowSlow},
		{"FollowTrimmed", testFollowTrimmed},
		{"FollowCanceled", testFollowCanceled},
		{"FollowDropped", testFollowDropped},
		{"Reader", testReader},
		{"Rewind", testRewind},
		{"Wake", testWake},
		{"Unread", testUnread},
		{"WakeClose", testWakeClose},
		{"WakeRace", testWakeRace},
		{"Due", testDue},
		{"DuePages", testDuePages},
		{"DueClasses", testDueClasses},
		{"Head", testHead},
		{"List", testList},
		{"ListPages", testListPages},
		{"ListMetadata", testListMetadata},
		{"ListLive", testListLive},
		{"Listed", testListed},
		{"ListedPages", testListedPages},
		{"ListedLive", testListedLive},
		{"Retention", testRetention},
		{"MaxSize", testMaxSize},
		{"Pin", testPin},
		{"PinFull", testPinFull},
		{"Configure", testConfigure},
		{"Close", testClose},
		{"CloseInLoops", testCloseInLoops},
		{"Context", testContext},
		{"Model", testModel},
		{"Reopen", testReopen},
		{"ReopenExpired", testReopenExpired},
		{"Unavailable", testUnavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := func(t *testing.T) { test.run(&env{T: t, Options: o, open: open}) }
			if o.Bubble {
				bubble.Test(t, body)
			} else {
				if o.Parallel {
					t.Parallel()
				}
				body(t)
			}
		})
	}
}

// env is the environment of a test.
type env struct {
	*testing.T
	Options
	open func(t *testing.T, s replay.Settings) replay.Store

	mu       sync.Mutex
	appended map[string]appended // by log: the results of env.append since env.openNew
	writers  map[written]replay.Writer
}

// written is a log written by env.append.
type written struct {
	store replay.Store
	log   string
}

// mostWriters is the number of logs of a test written by lasting writers. The others are written by their names.
const mostWriters = 16

// appendTo appends by a writer of the log, or by its name.
func (e *env) appendTo(s replay.Store, a replay.Append) error {
	e.mu.Lock()
	key := written{s, a.Log}
	w := e.writers[key]
	if w == nil && len(e.writers) < mostWriters {
		if e.writers == nil {
			e.writers = make(map[written]replay.Writer)
		}
		w = replay.Write(s, a.Log)
		e.writers[key] = w
		e.Cleanup(w.Close)
	}
	e.mu.Unlock()
	if w == nil {
		return s.Append(e.Context(), a)
	}
	head, err := w.Head(e.Context())
	if err == nil && head.Revision != a.Expect || err != nil && !errors.Is(err, replay.ErrNotFound) {
		e.Errorf("Head of %.40q by a writer: %+v, %v; the revision must be %d", a.Log, head, err, a.Expect)
	}
	a.Log = ""
	return w.Append(e.Context(), a)
}

// appended is the expected state of a log after the appends of a test.
type appended struct {
	revision uint64
	ended    bool
}

// store opens a store for the time of the test.
func (e *env) store(s replay.Settings) replay.Store {
	e.Helper()
	st := e.openNew(s)
	e.Cleanup(func() {
		if err := st.Close(); err != nil {
			e.Errorf("Close: %v", err)
		}
	})
	return st
}

// openNew opens a store; the test closes it.
func (e *env) openNew(s replay.Settings) replay.Store {
	e.appended = make(map[string]appended)
	return e.open(e.T, s)
}

// append appends as the only writer of the log, and has to succeed. It sets a.Expect.
func (e *env) append(s replay.Store, a replay.Append) {
	e.Helper()
	e.mu.Lock()
	known := e.appended[a.Log]
	e.mu.Unlock()
	if known.ended { // and has been dropped since
		known = appended{}
	}
	a.Expect = known.revision
	if err := e.appendTo(s, a); err != nil {
		e.Fatalf("Append to %.40q at revision %d: %v", a.Log, a.Expect, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.appended[a.Log] = appended{a.Expect + 1, a.End}
	if a.Drop {
		delete(e.appended, a.Log)
	}
}

// each calls f with all numbers below n, and each call appends to logs of its own: at the same time, if the driver
// waits more than it computes.
func (e *env) each(n int, f func(i int)) {
	if !e.Options.Parallel {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				f(int(i - 1))
			}
		})
	}
	wg.Wait()
	if e.Failed() {
		e.FailNow()
	}
}

// times returns the number of repetitions of a check that finds more with each one: n, or less if the driver waits each
// time.
func (e *env) times(n int) int {
	if e.Options.Parallel {
		return n / 5
	}
	return n
}

// revised returns the expected head of a log. If the test appends by env.append, the head has the log's revision;
// otherwise it has the revision of got, unless want has one.
func (e *env) revised(log string, want, got replay.Head) replay.Head {
	if known, ok := e.appended[log]; ok {
		want.Revision = known.revision
	} else if want.Revision == 0 {
		want.Revision = got.Revision
	}
	return want
}

// state is the whole result of Load.
type state struct {
	Head     replay.Head
	Snapshot []byte
	Records  []replay.Record
}

// equal compares results of a store. Times taken by the store itself are compared only for being there.
var equal = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Ended" },
		cmp.Comparer(func(a, b time.Time) bool { return a.IsZero() == b.IsZero() })),
}

func (e *env) wantLoad(s replay.Store, log string, want state) {
	e.Helper()
	h, snapshot, records, err := s.Load(e.Context(), log)
	if err != nil {
		e.Fatalf("Load(%.40q): %v", log, err)
	}
	e.wantHead(s, log, want.Head)
	want.Head = e.revised(log, want.Head, h)
	got := state{h, snapshot, records}
	if slices.EqualFunc(want.Records, got.Records, sameRecord) {
		want.Records, got.Records = nil, nil // cmp takes its time
	}
	if want.Records == nil && got.Records == nil && sameHead(want.Head, h) && bytes.Equal(want.Snapshot, snapshot) {
		return
	}
	if d := cmp.Diff(want, got, equal); d != "" {
		e.Fatalf("Load(%.40q) (-want +got):\n%s", log, d)
	}
}

func (e *env) wantNotFound(s replay.Store, log string) {
	e.Helper()
	if _, _, _, err := s.Load(e.Context(), log); !errors.Is(err, replay.ErrNotFound) {
		e.Fatalf("Load(%.40q): %v, want ErrNotFound", log, err)
	}
	if h, err := s.Head(e.Context(), log); !errors.Is(err, replay.ErrNotFound) || h.First != 0 {
		e.Fatalf("Head(%.40q): %+v, %v, want ErrNotFound", log, h, err)
	}
}

// sameEntry is equal for entries.
func sameEntry(a, b replay.Entry) bool { return a.Log == b.Log && sameHead(a.Head, b.Head) }

// sameHead is equal for heads: cmp takes its time.
func sameHead(g, h replay.Head) bool {
	return g.Revision == h.Revision && g.First == h.First && g.Last == h.Last && g.Bytes == h.Bytes &&
		bytes.Equal(g.Metadata, h.Metadata) &&
		g.DueAt.Equal(h.DueAt) && g.Ended.IsZero() == h.Ended.IsZero() && slices.Equal(g.Gaps, h.Gaps) &&
		g.Lost == h.Lost && g.Cut == h.Cut &&
		slices.EqualFunc(g.Lists, h.Lists, func(a, b replay.Listing) bool {
			return a.List == b.List && a.At.Equal(b.At) && a.Label == b.Label
		})
}

func sameRecord(a, b replay.Record) bool {
	return a.Seq == b.Seq && bytes.Equal(a.Data, b.Data) && a.More == b.More
}

// follow takes all records of a sequence. In its result, More is false, unless it was set on the last record: then it
// was not true.
func follow(seq iter.Seq2[replay.Record, error]) (records []replay.Record, err error) {
	for r, e := range seq {
		if e != nil {
			err = e
			continue // nothing must come after it
		}
		if err != nil {
			return records, fmt.Errorf("record %d was yielded after the error %w", r.Seq, err)
		}
		if n := len(records); n > 0 {
			records[n-1].More = false
		}
		r.Data = bytes.Clone(r.Data)
		records = append(records, r)
	}
	if n := len(records); n > 0 && err != nil {
		records[n-1].More = false // the error could be had
	}
	return records, err
}

func (e *env) wantFollow(s replay.Store, log string, after uint64, want []replay.Record) {
	e.Helper()
	got, err := follow(replay.Follow(e.Context(), s, log, after, nil))
	if err != nil {
		e.Fatalf("Follow(%.40q, %d): %v", log, after, err)
	}
	if slices.EqualFunc(want, got, sameRecord) {
		return
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		e.Fatalf("Follow(%.40q, %d) (-want +got):\n%s", log, after, d)
	}
}

func (e *env) due(s replay.Store, class byte, from, until time.Time) []replay.DueLog {
	e.Helper()
	var due []replay.DueLog
	for w, err := range s.Due(e.Context(), class, from, until) {
		if err != nil {
			e.Fatalf("Due: %v", err)
		}
		due = append(due, w)
	}
	return due
}

func (e *env) wantDue(s replay.Store, class byte, from, until time.Time, want ...replay.DueLog) {
	e.Helper()
	if d := cmp.Diff(want, e.due(s, class, from, until), cmpopts.EquateEmpty()); d != "" {
		e.Fatalf("Due of %q (-want +got):\n%s", class, d)
	}
}

func (e *env) wantHead(s replay.Store, log string, want replay.Head) {
	e.Helper()
	h, err := s.Head(e.Context(), log)
	if err != nil {
		e.Fatalf("Head(%.40q): %v", log, err)
	}
	if want = e.revised(log, want, h); sameHead(want, h) {
		return
	}
	if d := cmp.Diff(want, h, equal); d != "" {
		e.Fatalf("Head(%.40q) (-want +got):\n%s", log, d)
	}
}

func (e *env) wantList(s replay.Store, prefix, after string, want ...replay.Entry) {
	e.Helper()
	var got []replay.Entry
	for entry, err := range s.List(e.Context(), prefix, after) {
		if err != nil {
			e.Fatalf("List(%.40q, %.40q): %v", prefix, after, err)
		}
		got = append(got, entry)
	}
	want = slices.Clone(want)
	for i := range min(len(want), len(got)) {
		want[i].Head = e.revised(want[i].Log, want[i].Head, got[i].Head)
	}
	if slices.EqualFunc(want, got, sameEntry) {
		return // cmp takes its time
	}
	if d := cmp.Diff(want, got, equal); d != "" {
		e.Fatalf("List(%.40q, %.40q) (-want +got):\n%s", prefix, after, d)
	}
}

func (e *env) wantListed(s replay.Store, list string, after replay.ListedLog, want ...replay.ListedLog) {
	e.Helper()
	var got []replay.ListedLog
	for l, err := range s.Listed(e.Context(), list, after) {
		if err != nil {
			e.Fatalf("Listed(%.40q, %.40q): %v", list, after.Log, err)
		}
		got = append(got, l)
	}
	if slices.EqualFunc(want, got, func(a, b replay.ListedLog) bool {
		return a.Log == b.Log && a.At.Equal(b.At) && a.Label == b.Label
	}) {
		return // cmp takes its time
	}
	if d := cmp.Diff(want, got, equal); d != "" {
		e.Fatalf("Listed(%.40q, %.40q) (-want +got):\n%s", list, after.Log, d)
	}
}

// pass lets a time pass, if the driver lives in a bubble.
func (e *env) pass(d time.Duration) {
	if e.Bubble {
		<-time.After(d)
		synctest.Wait()
	}
}

// minute is a retention of a minute. In real time it is an hour, so that no log expires before the test has seen it.
func (e *env) minute() time.Duration {
	if e.Bubble {
		return time.Minute
	}
	return time.Hour
}

// slack is the longest time a log may still be there after its retention.
const slack = time.Second

// wantDropped waits for a log's retention to be over. Outside of a bubble the retention has to be short.
func (e *env) wantDropped(s replay.Store, log string, retention time.Duration) {
	e.Helper()
	if e.Bubble {
		e.pass(retention + slack)
		e.wantNotFound(s, log)
		return
	}
	for {
		_, _, _, err := s.Load(e.Context(), log)
		if errors.Is(err, replay.ErrNotFound) {
			return
		}
		if err != nil {
			e.Fatal(err)
		}
		runtime.Gosched()
	}
}

// numbered returns n records of a log, beginning with the first one.
func numbered(log string, first uint64, n int) []replay.Record {
	records := make([]replay.Record, n)
	for i := range records {
		seq := first + uint64(i)
		records[i] = replay.Record{Seq: seq, Data: fmt.Appendf(nil, "%s/%d", log, seq)}
	}
	return records
}

// data returns the data of records, as an Append wants them.
func data(records []replay.Record) [][]byte {
	out := make([][]byte, len(records))
	for i, r := range records {
		out[i] = r.Data
	}
	return out
}

func size(records []replay.Record) (n int64) {
	for _, r := range records {
		n += int64(len(r.Data))
	}
	return n
}

// dense returns an error if records are not those of a log from after on.
func dense(log string, after uint64, records []replay.Record) error {
	for i, want := range numbered(log, after+1, len(records)) {
		if !sameRecord(records[i], want) {
			return fmt.Errorf("record %d %.40q where %d should be", records[i].Seq, records[i].Data, want.Seq)
		}
	}
	return nil
}

var ctx = context.Background() // of goroutines; they must not end with the test before they are asked to
