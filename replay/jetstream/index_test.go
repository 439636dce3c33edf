// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
)

// contents is the whole content of a store.
type contents struct {
	Entries   []replay.Entry
	Due       []replay.DueLog
	Listed    map[string][]replay.ListedLog
	Snapshots map[string][]byte
	Records   map[string][]replay.Record
	Expires   map[string]time.Time
}

func read(t *testing.T, s *Store) contents {
	t.Helper()
	c := contents{Listed: make(map[string][]replay.ListedLog), Snapshots: make(map[string][]byte),
		Records: make(map[string][]replay.Record), Expires: make(map[string]time.Time)}
	for e, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		c.Entries = append(c.Entries, e)
		_, snapshot, records, err := s.Load(t.Context(), e.Log)
		if err != nil {
			t.Fatalf("Load(%q): %v", e.Log, err)
		}
		c.Snapshots[e.Log], c.Records[e.Log] = snapshot, records
		s.mu.Lock()
		l, _ := s.index.Get(e.Log)
		s.mu.Unlock()
		c.Expires[e.Log] = l.Expires
		for _, l := range e.Head.Lists {
			c.Listed[l.List] = nil
		}
	}
	for list := range c.Listed {
		for l, err := range s.Listed(t.Context(), list, replay.ListedLog{}) {
			if err != nil {
				t.Fatal(err)
			}
			c.Listed[list] = append(c.Listed[list], l)
		}
	}
	for d, err := range s.Due(t.Context(), 'l', replay.Recover, replay.EndOfTime) {
		if err != nil {
			t.Fatal(err)
		}
		c.Due = append(c.Due, d)
	}
	return c
}

// TestIndexAfterClaim: whatever was appended, the next owner has the same.
func TestIndexAfterClaim(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	owner := claim(t, s, 0, "a")
	for round := range 4 {
		randomAppends(t, owner, random, 150, 10)
		want := read(t, owner)
		if err := owner.Close(); err != nil {
			t.Fatal(err)
		}
		owner = claim(t, s, 0, fmt.Sprint(round))
		if d := cmp.Diff(want, read(t, owner), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("round %d (-former owner +next owner):\n%s", round, d)
		}
	}
	owner.Close()
}

// TestFormerLife: a late purge takes nothing of a log begun since, and the remains of a former log are not taken for
// its own.
func TestFormerLife(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	owner := claim(t, s, 0, "a")
	st := owner.st
	records := [][]byte{[]byte("one"), []byte("two"), []byte("three")}
	must := func(a replay.Append) {
		t.Helper()
		if err := owner.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	want := func(log string, first int, of [][]byte) {
		t.Helper()
		other := openStreams(t, connect(t, servers.URL()), s.config)
		for _, l := range []replay.Logs{owner, other.Logs(0)} {
			h, _, got, err := l.Load(t.Context(), log)
			if err != nil || len(got) != len(of) {
				t.Fatalf("%s is %+v with %d records, %v; want %d", log, h, len(got), err, len(of))
			}
			for i, r := range got {
				if r.Seq != uint64(first+i) || !bytes.Equal(r.Data, of[i]) {
					t.Errorf("%s has the record %d %q, want %q", log, r.Seq, r.Data, of[i])
				}
			}
		}
	}
	// The purge of a drop, once more when the next log is there.
	must(replay.Append{Log: "late", Records: records, Trim: 1, Snapshot: []byte("s")})
	must(replay.Append{Log: "late", Expect: 1, Drop: true})
	tombstone := owner.last
	must(replay.Append{Log: "late", Records: records[:2]})
	must(replay.Append{Log: "late", Expect: 1, Records: records[2:]})
	if err := st.purge(t.Context(), st.prefix+token("late")+".>", tombstone+1); err != nil {
		t.Fatal(err)
	}
	want("late", 1, records)
	// The purge of a trim, once more when more was appended.
	must(replay.Append{Log: "late", Expect: 2, Trim: 2, Snapshot: []byte("to 2")})
	trimmed := owner.last
	must(replay.Append{Log: "late", Expect: 3, Records: records[:1]})
	if err := st.purge(t.Context(), st.prefix+token("late")+".r.1", trimmed); err != nil {
		t.Fatal(err)
	}
	want("late", 3, [][]byte{records[2], records[0]})
	// The remains of a log never purged, or of an append that was not completed.
	left := []value{
		newValue(st.recordSubject("again", 1), encodeRecords(records), 1000),
		newValue(st.recordSubject("again", 4), encodeRecords(records), 1000),
		newValue(st.recordSubject("again", 2), encodeRecords(records), 1000),
		newValue(st.snapshotSubject("again"), []byte("old"), 1000),
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	owner.ctx = t.Context() // run has ended, so this goroutine may write
	if _, err := owner.commit(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	owner = claim(t, s, 0, "b")
	defer owner.Close()
	must(replay.Append{Log: "again", Records: records[:1]})
	want("again", 1, records[:1])
	must(replay.Append{Log: "again", Expect: 1, Records: records[1:2]})
	must(replay.Append{Log: "again", Expect: 2, Records: records[2:]})
	want("again", 1, records)
	if _, snapshot, _, err := owner.Load(t.Context(), "again"); snapshot != nil || err != nil {
		t.Errorf("the snapshot is %q, %v", snapshot, err)
	}
}

// TestTrimParts drops records before one of several parts, and before many messages: the purge takes the dropped ones,
// and no more.
func TestTrimParts(t *testing.T) {
	t.Parallel()
	own := cluster(t, 1, natstest.Config{MaxPayload: 4096})
	s := streams(t, connect(t, own.URL()), Config{Replicas: 1})
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	var many [][]byte
	for i := range 900 {
		many = append(many, bytes.Repeat([]byte{byte(i)}, 3400))
	}
	large := bytes.Repeat([]byte{1}, 10_000)
	for log, test := range map[string]struct {
		appends []replay.Append
		want    [][]byte
	}{
		"large": {[]replay.Append{{Records: [][]byte{{1}}}, {Records: [][]byte{large}}, {Trim: 1}}, [][]byte{large}},
		"added": {[]replay.Append{{Records: [][]byte{{1}}}, {Trim: 1, Records: [][]byte{large}}}, [][]byte{large}},
		"many":  {[]replay.Append{{Records: [][]byte{{1}}}, {Trim: 1, Records: many}}, many},
		"new":   {[]replay.Append{{Trim: 1, Records: [][]byte{{1}, large}}}, [][]byte{large}},
	} {
		for i, a := range test.appends {
			a.Log, a.Expect = log, uint64(i)
			if err := owner.Append(t.Context(), a); err != nil {
				t.Fatalf("%s, append %d: %v", log, i, err)
			}
		}
		patiently(t, func(ctx context.Context) error {
			_, err := owner.st.last(ctx, owner.st.recordSubject(log, 1))
			if !errors.Is(err, errNoMessage) {
				return fmt.Errorf("the first record of %s: %v, want errNoMessage", log, err)
			}
			return nil
		})
		_, _, got, err := s.Logs(0).Load(t.Context(), log)
		same := func(r replay.Record, data []byte) bool { return bytes.Equal(r.Data, data) }
		if err != nil || !slices.EqualFunc(got, test.want, same) {
			t.Errorf("%s has %d records, %v; want %d", log, len(got), err, len(test.want))
		}
	}
}

// TestLoadMeanwhile loads a log changed after its head has been read: the results belong together.
func TestLoadMeanwhile(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	s.Plain(true) // records in a head belong to it
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	three := [][]byte{[]byte("one"), []byte("two"), []byte("three")}
	for log, test := range map[string]struct {
		before, meanwhile []replay.Append
		snapshot          string
		want              [][]byte
	}{
		"trimmed": {
			[]replay.Append{{Records: three}, {Expect: 1, Trim: 1, Snapshot: []byte("to 1")}},
			[]replay.Append{{Expect: 2, Trim: 2, Snapshot: []byte("to 2")}},
			"to 2", three[2:],
		},
		"begun again": {
			[]replay.Append{{Records: three[:1]}},
			[]replay.Append{{Expect: 1, Drop: true}, {Records: three[1:2]}, {Expect: 1}},
			"", three[1:2],
		},
	} {
		change := func(all []replay.Append) {
			for _, a := range all {
				a.Log = log
				if err := owner.Append(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, source := range map[string]headSource{"the owner": owner.headOf, "the leader": owner.st.readHead} {
			change(test.before)
			changed := false
			h, snapshot, records, err := owner.st.load(t.Context(), log, func(ctx context.Context, log string) (head, error) {
				h, err := source(ctx, log)
				if !changed {
					change(test.meanwhile)
					changed = true
				}
				return h, err
			})
			want, _ := owner.Head(t.Context(), log)
			if err != nil || h.Revision != want.Revision || string(snapshot) != test.snapshot || len(records) != 1 ||
				!bytes.Equal(records[0].Data, test.want[0]) {
				t.Errorf("%s, with the head of %s: revision %d, snapshot %q, records %v, %v", log, name, h.Revision, snapshot,
					records, err)
			}
			change([]replay.Append{{Expect: want.Revision, Drop: true}})
		}
	}
}

// TestParts appends more than a message may have, in every part of a log. More than a batch may have is refused.
func TestParts(t *testing.T) {
	t.Parallel()
	own := cluster(t, 1, natstest.Config{MaxPayload: 4096})
	s := streams(t, connect(t, own.URL()), Config{Replicas: 1})
	owner := claim(t, s, 0, "a")
	filled := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return b
	}
	var many [][]byte
	for range 900 {
		many = append(many, filled(3400))
	}
	long := string(bytes.Repeat([]byte{0xff}, replay.MaxName))
	var lists []replay.Listing
	for i := range replay.MaxLists {
		lists = append(lists, replay.Listing{List: fmt.Sprintf("list %100d", i), Label: string(filled(30))})
	}
	for _, a := range []replay.Append{
		{Log: "record", Records: [][]byte{{1}, filled(100_000), {2}}},
		{Log: "records", Records: [][]byte{filled(3000), filled(3000), {1}, filled(10), filled(3583), filled(3584)}},
		{Log: "metadata", Metadata: filled(50_000)},
		{Log: "snapshot", Records: many[:3], Trim: 2, Snapshot: filled(70_000)},
		{Log: "lists", Lists: lists},
		{Log: long, Records: [][]byte{filled(10_000)}, Metadata: filled(10_000), Trim: 0},
		{Log: "many", Records: many, Metadata: filled(5000)},
	} {
		if err := owner.Append(t.Context(), a); err != nil {
			t.Fatalf("%.40q: %v", a.Log, err)
		}
	}
	err := owner.Append(t.Context(), replay.Append{Log: "record", Expect: 1, Records: append(many, many[:100]...)})
	if err == nil || !strings.Contains(err.Error(), "too many bytes") {
		t.Errorf("more than a batch takes: %v", err)
	}
	for _, log := range []string{"record", "metadata", long} { // again, smaller and larger
		for i, n := range []int{10, 40_000, 4000} {
			if err := owner.Append(t.Context(), replay.Append{Log: log, Expect: uint64(i + 1), Metadata: filled(n),
				Records: [][]byte{filled(n)}}); err != nil {
				t.Fatalf("%.40q: %v", log, err)
			}
		}
	}
	want := read(t, owner)
	if n := len(want.Records["many"]); n != len(many) {
		t.Errorf("%d records of many, want %d", n, len(many))
	}
	for i, r := range want.Records["many"] {
		if !bytes.Equal(r.Data, many[i]) {
			t.Fatalf("record %d is another one", r.Seq)
		}
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	next := openStreams(t, connect(t, own.URL()), s.config)
	for _, e := range want.Entries {
		h, snapshot, records, err := next.Logs(0).Load(t.Context(), e.Log)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e.Head, h, cmpopts.EquateEmpty()); d != "" || !bytes.Equal(snapshot, want.Snapshots[e.Log]) ||
			len(records) != len(want.Records[e.Log]) {
			t.Errorf("another node reads of %.40q (-want +got) %s", e.Log, d)
		}
	}
	got := read(t, claim(t, next, 0, "b"))
	for log, records := range want.Records { // cmp takes its time
		same := func(a, b replay.Record) bool { return a.Seq == b.Seq && bytes.Equal(a.Data, b.Data) }
		if !slices.EqualFunc(records, got.Records[log], same) {
			t.Errorf("the next owner has other records of %.40q", log)
		}
	}
	want.Records, got.Records = nil, nil
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("the next owner has (-want +got):\n%.2000s", d)
	}
}

// TestHeadOfLaggingReplica: an owner reading the head of a dropped and purged log, from a replica without news of the
// drop, does not have the log.
func TestHeadOfLaggingReplica(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	for _, log := range []string{"kept", "dropped"} {
		if err := owner.Append(t.Context(), replay.Append{Log: log, Records: [][]byte{{1}}}); err != nil {
			t.Fatal(err)
		}
	}
	late, err := owner.st.last(t.Context(), owner.st.headSubject("dropped"))
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Append(t.Context(), replay.Append{Log: "dropped", Expect: 1, Drop: true}); err != nil {
		t.Fatal(err)
	}
	filter := owner.st.prefix + token("dropped") + ".>"
	patiently(t, func(ctx context.Context) error { return owner.st.purge(ctx, filter, late.seq+100) })

	next := newCatalog(owner.st)
	err = errors.Join(next.take(t.Context(), late), next.readOn(t.Context(), 0), next.compare(t.Context(), 0))
	if err != nil {
		t.Fatal(err)
	}
	_, kept := next.index.Value("kept")
	if _, dropped := next.index.Value("dropped"); !kept || dropped {
		t.Errorf("the index has the log that is there: %t, and the one that is not: %t", kept, dropped)
	}
}
