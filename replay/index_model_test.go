// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestIndexModel holds an index, whose logs rest soon, to a map of logs.
func TestIndexModel(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	now := time.Now()
	moment := func() time.Time {
		switch random.IntN(8) {
		case 0:
			return time.Time{}
		case 1:
			return Recover
		case 2:
			return Recover.Add(time.Duration(random.IntN(3)-1) * time.Nanosecond)
		case 3:
			return time.Unix(1<<40, random.Int64N(3))
		case 4:
			return time.Unix(-1<<40, random.Int64N(3))
		case 5:
			return now.Add(time.Duration(random.IntN(1000)) * time.Hour)
		}
		return now.Add(time.Duration(random.IntN(4))) // many with one stamp
	}
	name := func() string {
		return fmt.Sprintf("%c%s\x00%s\x00%d", "ab"[random.IntN(2)], strings.Repeat("partner", random.IntN(3)),
			strings.Repeat("leader", random.IntN(3)), random.IntN(8))
	}
	x := NewIndex(Settings{}, 3, Packing[uint64]{Append: binary.AppendUvarint, Parse: (*Numbers).Next})
	want := make(map[string]Indexed[uint64])
	for i := range 3000 {
		name := name()
		l, found := want[name]
		switch {
		case found && random.IntN(6) == 0:
			x.Remove(name)
			delete(want, name)
		default:
			l.Name, l.Value, l.Size = name, random.Uint64(), random.Int64N(1e6)
			l.Head = Head{Revision: l.Head.Revision + 1, Ended: l.Head.Ended, Metadata: []byte{1}, Lists: l.Head.Lists}
			if l.Head.DueAt = moment(); random.IntN(300) == 0 {
				l.Head.Metadata = make([]byte, 5000)
				for k := range l.Head.Metadata {
					l.Head.Metadata[k] = byte(random.Uint32())
				}
			}
			if random.IntN(3) > 0 {
				l.Head.Lists = nil
				for k := range random.IntN(4) {
					l.Head.Lists = append(l.Head.Lists, Listing{List: fmt.Sprint("list ", k), At: moment(), Label: fmt.Sprint(i)})
				}
			}
			expires := time.Time{}
			if random.IntN(10) == 0 && !found {
				l.Head.Ended, expires = now, now.Add(time.Duration(random.IntN(1000))*time.Hour).Round(0)
				l.Expires = expires
			}
			x.Set(name, l.Value, l.Head, l.Size, expires)
			want[name] = l
		}
		if i%100 == 0 {
			checkIndex(t, x, want)
		}
	}
	large, awake := 0, 0
	for slot := range uint32(len(x.logs.pages) * slotsOfPage) {
		if l := x.logs.isAwake(slot); l != nil && len(l.head.Metadata) > packedMost {
			large++
		} else if l != nil {
			awake++
		}
	}
	if awake > x.awake {
		t.Errorf("%d logs are awake beside %d large ones, want %d", awake, large, x.awake)
	}
	for name := range x.Names() {
		x.Remove(name)
	}
	checkIndex(t, x, nil)
	for _, p := range x.logs.pages {
		if len(p.packed) > 0 || p.awake != nil || p.ended != nil {
			t.Fatalf("a page without logs has %d bytes, %v, %v", len(p.packed), p.awake, p.ended)
		}
	}
	if n := len(x.logs.names.numbers); n > 0 {
		t.Errorf("%d beginnings of names are kept without logs", n)
	}
}

// TestListsWithOneHash: logs in two lists that have one hash leave no place behind.
func TestListsWithOneHash(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	x := NewIndex(Settings{}, 3, nothing)
	lists, known := []string{"another"}, make(map[uint32]string)
	for i := 0; len(lists) == 1; i++ {
		list := fmt.Sprint("list ", i)
		if other, found := known[x.hash(list)]; found {
			lists = append(lists, list, other)
		}
		known[x.hash(list)] = list
	}
	want := make(map[string][]Listing)
	for range 2000 {
		name := fmt.Sprint("log ", random.IntN(30))
		if want[name] = nil; random.IntN(4) == 0 {
			x.Remove(name)
			continue
		}
		for _, i := range random.Perm(len(lists))[:random.IntN(len(lists)+1)] {
			at := time.Unix(1<<40, random.Int64N(4)) // of one stamp
			if random.IntN(4) == 0 {
				at = time.Time{}
			}
			want[name] = append(want[name], Listing{List: lists[i], At: at})
		}
		x.Set(name, struct{}{}, Head{Lists: want[name]}, 1, time.Time{})
	}
	lock := func(context.Context) error { return nil }
	for _, list := range lists {
		var in, got []string
		for name, all := range want {
			if slices.ContainsFunc(all, func(l Listing) bool { return l.List == list }) {
				in = append(in, name)
			}
		}
		for _, l := range values(t, x.Listed(t.Context(), lock, func() {}, list, ListedLog{})) {
			got = append(got, l.Log)
		}
		slices.Sort(in)
		slices.Sort(got)
		if d := cmp.Diff(in, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", list, d)
		}
	}
	for name := range want {
		x.Remove(name)
	}
	if x.listed.size > 0 {
		t.Errorf("%d places are left without logs", x.listed.size)
	}
}

// checkIndex compares an index with the logs that it must have.
func checkIndex(t *testing.T, x *Index[uint64], want map[string]Indexed[uint64]) {
	t.Helper()
	same := func(what string, want, got any) {
		t.Helper()
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%s (-want +got):\n%s", what, d)
		}
	}
	lock := func(context.Context) error { return nil }
	names := slices.Sorted(maps.Keys(want))
	open := int64(0)
	var entries []Entry
	due, listed := make(map[byte][]DueLog), make(map[string][]ListedLog)
	for _, name := range names {
		l := want[name]
		entries = append(entries, Entry{name, l.Head})
		if l.Expires.IsZero() {
			open += l.Size
		}
		if !l.Head.DueAt.IsZero() {
			due[name[0]] = append(due[name[0]], DueLog{name, l.Head.DueAt})
		}
		for _, in := range l.Head.Lists {
			listed[in.List] = append(listed[in.List], ListedLog{name, in.At, in.Label})
		}
		got, _ := x.Get(name)
		same("the log", l, got)
	}
	same("all logs", names, slices.Sorted(x.Names()))
	same("the bytes of open logs", open, x.Open())
	same("List", entries, values(t, x.Entries(t.Context(), lock, func() {}, "", "")))
	for _, class := range []byte("ab") {
		slices.SortFunc(due[class], DueLog.Compare)
		froms := []time.Time{time.Unix(-1<<50, 0)}
		for i := 0; i < len(due[class]); i += 1 + len(due[class])/4 {
			froms = append(froms, due[class][i].At)
		}
		for _, from := range froms {
			later := slices.DeleteFunc(slices.Clone(due[class]), func(l DueLog) bool { return l.At.Before(from) })
			same("Due", later, values(t, x.Due(t.Context(), lock, func() {}, class, from, time.Unix(1<<50, 0))))
		}
	}
	for list, all := range listed {
		slices.SortFunc(all, ListedLog.Compare)
		same("Listed", all, values(t, x.Listed(t.Context(), lock, func() {}, list, ListedLog{})))
		for i := 0; i < len(all); i += 1 + len(all)/4 {
			same("Listed after one", all[i+1:], values(t, x.Listed(t.Context(), lock, func() {}, list, all[i])))
		}
	}
	next := slices.MinFunc(append(slices.Collect(maps.Values(want)), Indexed[uint64]{Expires: time.Unix(1<<33, 0)}),
		func(a, b Indexed[uint64]) int { return compareExpires(a.Expires, b.Expires) })
	if name, ok := x.Expired(next.Expires); ok && !want[name].Expires.Equal(next.Expires) || ok != (next.Name != "") {
		t.Fatalf("%q expires next, want %q", name, next.Name)
	}
}

// compareExpires has the zero time, of logs that have not ended, behind all others.
func compareExpires(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

func values[T any](t *testing.T, all iter.Seq2[T, error]) (got []T) {
	t.Helper()
	for v, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	return got
}
