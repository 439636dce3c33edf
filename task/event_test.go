// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func (g generator) event(seq uint64) Event {
	ev := Event{Seq: seq}
	if g.IntN(3) == 0 {
		m := g.message()
		ev.Cause = &m
	}
	kind := g.IntN(12)
	if seq == 1 {
		kind = 0
	}
	switch kind {
	case 0:
		t := g.task()
		ev.Task = &t
	case 1, 2:
		s := g.status()
		s.TaskExtensions = g.extra()
		ev.Status = &s
	case 3:
		m := g.message()
		ev.Message = &m
	default:
		ev.Chunk = &Chunk{Product: g.product(), Append: g.IntN(3) > 0, Last: g.IntN(2) == 0, Extensions: g.extra()}
	}
	return ev
}

// TestLogRoundTrip: a Task folded from the stored events is the Task folded from the events themselves, and a reader's
// copy of any time does not change later.
func TestLogRoundTrip(t *testing.T) {
	g := newGenerator(2)
	for range 60 {
		var live, stored Fold
		type moment struct {
			task Task
			json string
		}
		var taken []moment
		for seq := uint64(1); seq <= 12; seq++ {
			ev := g.event(seq)
			data := AppendEvent(nil, &ev)
			back, err := DecodeEvent(data)
			if err != nil {
				t.Fatal(err)
			}
			back.Seq = seq
			if d := cmp.Diff(ev, back, cmpopts.EquateEmpty()); d != "" {
				t.Fatal(d)
			}
			live.Apply(ev)
			stored.Apply(back)
			if live.Seq != seq || stored.Seq != seq {
				t.Fatalf("after event %d: %d, %d", seq, live.Seq, stored.Seq)
			}
			if after := string(AppendEvent(nil, &ev)); after != string(data) {
				t.Fatalf("Apply has changed its event:\n%s", cmp.Diff(string(data), after))
			}
			taken = append(taken, moment{*live.Task(), string(AppendTask(nil, live.Task()))})
		}
		if d := cmp.Diff(*live.Task(), *stored.Task(), cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
		for i, m := range taken {
			if d := cmp.Diff(m.json, string(AppendTask(nil, &m.task))); d != "" {
				t.Fatalf("what was taken after event %d has changed:\n%s", i+1, d)
			}
		}
	}
}

func TestDecodeEventRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"empty": ``, "no kind": `{}`, "cause only": `{"cause":{"id":"m"}}`, "null": `{"task":null}`,
		"cut off":    `{"task":{"id":"t"`,
		"two kinds":  `{"status":{"state":"working","stateChangedAt":"2025-09-01T12:00:00Z"},"task":{"id":"t"}}`,
		"not a time": `{"status":{"stateChangedAt":1}}`,
	} {
		if ev, err := DecodeEvent([]byte(data)); err == nil {
			t.Errorf("%s: decoded as %+v", name, ev)
		}
	}
}

func TestFold(t *testing.T) {
	working, failed := Status{State: Working}, Status{State: Failed}
	more := Status{State: Working, DataItems: []DataItem{Text("still at it")}}
	chunk := func(id string, add bool, items ...DataItem) Event {
		return Event{Chunk: &Chunk{Product: Product{ID: id, DataItems: items}, Append: add}}
	}
	named := Product{ID: "p", Name: "n", Description: "d", DataItems: []DataItem{Text("x")}}
	file := DataItem{Kind: FileItem, URI: "u"}
	noted := DataItem{Kind: TextItem, Text: "noted", Metadata: []byte(`{}`)}
	start, said := Message{ID: "start"}, Message{ID: "said"}
	first := Event{Task: &Task{ID: "t", Status: Status{State: Accepted}}}
	for name, tt := range map[string]struct {
		events []Event
		want   Task
	}{
		"first": {[]Event{first}, Task{ID: "t", Status: Status{State: Accepted}, StatusHistory: []Status{{State: Accepted}}}},
		"snapshot keeps its histories": {
			[]Event{{Task: &Task{Status: failed, StatusHistory: []Status{working, failed}, MessageHistory: []Message{start}}}},
			Task{Status: failed, StatusHistory: []Status{working, failed}, MessageHistory: []Message{start}}},
		"more news is no new row": {[]Event{{Status: &working}, {Status: &more}, {Status: &failed}},
			Task{Status: failed, StatusHistory: []Status{working, failed},
				MessageHistory: []Message{{SenderRole: Partner, DataItems: more.DataItems}}}},
		"messages": {[]Event{{Status: &working, Cause: &start}, {Message: &said}},
			Task{Status: working, StatusHistory: []Status{working}, MessageHistory: []Message{start, said}}},
		"pieces of text join": {[]Event{chunk("p", false, Text("a")), chunk("p", true, Text("b")),
			chunk("p", true, Text("c"), Text("d"))},
			Task{Products: []Product{{ID: "p", DataItems: []DataItem{Text("abcd")}}}}},
		"only plain ones do": {[]Event{chunk("p", false, Text("a")), chunk("p", true, noted), chunk("p", true, Text("b")),
			chunk("p", true, file, Text("c")), chunk("p", true, Text("d"))},
			Task{Products: []Product{{ID: "p", DataItems: []DataItem{Text("a"), noted, Text("b"), file, Text("cd")}}}}},
		"append begins a product": {[]Event{chunk("p", true, Text("a"))},
			Task{Products: []Product{{ID: "p", DataItems: []DataItem{Text("a")}}}}},
		"two at once": {[]Event{chunk("p", false, Text("a")), chunk("q", false, Text("b")), chunk("p", true, Text("c")),
			chunk("q", true, Text("d"))},
			Task{Products: []Product{{ID: "p", DataItems: []DataItem{Text("ac")}},
				{ID: "q", DataItems: []DataItem{Text("bd")}}}}},
		"begun again": {[]Event{chunk("p", false, Text("a")), chunk("p", true, Text("b")), chunk("p", false, Text("c")),
			chunk("p", true, Text("d"))},
			Task{Products: []Product{{ID: "p", DataItems: []DataItem{Text("cd")}}}}},
		"a name stays": {[]Event{{Chunk: &Chunk{Product: named}}, chunk("p", true, Text("y"))},
			Task{Products: []Product{{ID: "p", Name: "n", Description: "d", DataItems: []DataItem{Text("xy")}}}}},
		"a name changes": {[]Event{chunk("p", false), {Chunk: &Chunk{Product: named, Append: true}}},
			Task{Products: []Product{named}}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Fold
			for _, ev := range tt.events {
				f.Apply(ev)
			}
			if d := cmp.Diff(tt.want, *f.Task(), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestDiff: the chunks between two moments lead from the one to the other.
func TestDiff(t *testing.T) {
	g := newGenerator(3)
	appended := 0
	for range 1500 {
		known := g.products()
		now := slices.Clone(known)
		for i := range now { // Fold keeps the order and takes nothing back: all else can be shown
			now[i].DataItems = slices.Clone(now[i].DataItems)
			items := &now[i].DataItems
			if extra := g.extra(); len(extra) > 0 && g.IntN(2) == 0 { // a lost one is not shown
				now[i].Extensions = extra
			}
			switch g.IntN(7) {
			case 0:
				now[i].Name = g.text()
			case 1:
				*items = g.items()
			case 2, 3:
				*items = append(*items, g.items()...)
			case 4, 5:
				if n := len(*items); n > 0 && (*items)[n-1].Kind == TextItem {
					(*items)[n-1].Text += g.text()
					*items = append(*items, g.items()...)
				}
			}
		}
		for i := range g.IntN(2) {
			p := g.product()
			p.ID = fmt.Sprint("new", i)
			now = append(now, p)
		}
		f := NewFold(Task{Products: known})
		for _, c := range Diff(known, now) {
			if c.Append {
				appended++
			}
			f.Apply(Event{Chunk: &c})
		}
		if d := cmp.Diff(now, f.Task().Products, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("known %+v:\n%s", known, d)
		}
		if again := Diff(f.Task().Products, now); len(again) > 0 {
			t.Fatalf("a second Diff has %d chunks", len(again))
		}
		for i := range now {
			end := End(&f.Task().Products[i])
			f.Apply(Event{Chunk: &end})
		}
		if d := cmp.Diff(now, f.Task().Products, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("the last pieces change %+v:\n%s", now, d)
		}
	}
	if appended < 100 {
		t.Errorf("only %d chunks were appended", appended)
	}
}

// TestDiffIsSmall: a growing text costs its addition only.
func TestDiffIsSmall(t *testing.T) {
	long := strings.Repeat("x", 1000)
	known := []Product{{ID: "gone"}, {ID: "p", Name: "n", DataItems: []DataItem{Text(long)}}}
	now := []Product{{ID: "p", Name: "n", DataItems: []DataItem{Text(long + "y"), {Kind: FileItem, URI: "u"}}}}
	want := []Chunk{{Product: Product{ID: "p", DataItems: []DataItem{Text("y"), {Kind: FileItem, URI: "u"}}},
		Append: true}}
	if d := cmp.Diff(want, Diff(known, now), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}
