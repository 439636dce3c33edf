// SPDX-License-Identifier: Apache-2.0

package task

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOffer: a status may name the products of the task from then on. In its stored form it is a status like any other.
func TestOffer(t *testing.T) {
	at := time.Date(2025, 9, 1, 12, 0, 0, 0, time.UTC)
	cause := &Message{ID: "m", SentAt: at, SenderRole: Leader, Command: Continue, DataItems: []DataItem{Text("again")}}
	product := func(id string) Product { return Product{ID: id, DataItems: []DataItem{Text(id)}} }
	for _, tc := range []struct {
		name            string
		ev              Event
		want, withdrawn []Product
	}{
		{"none", Event{Status: &Status{State: Working, ChangedAt: at}}, []Product{product("a"), product("b")}, nil},
		{"all withdrawn", Event{Status: &Status{State: Working, ChangedAt: at}, Offer: []string{}, Cause: cause}, nil,
			[]Product{product("a"), product("b")}},
		{"some, in another order", Event{Status: &Status{State: Working, ChangedAt: at}, Offer: []string{"b", "x", "b"}},
			[]Product{product("b")}, nil},
		{"quoted", Event{Status: &Status{State: Working, ChangedAt: at}, Offer: []string{"\"\n", "a"}},
			[]Product{product("a")}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stored := AppendEvent(nil, &tc.ev)
			got, err := DecodeEvent(stored)
			if diff := cmp.Diff(tc.ev, got); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
			kind, value, because := SplitEvent(stored)
			plain := tc.ev
			plain.Offer = nil
			plainKind, plainValue, plainBecause := SplitEvent(AppendEvent(nil, &plain))
			if kind != plainKind || string(value) != string(plainValue) || string(because) != string(plainBecause) {
				t.Errorf("%q is taken apart as %q, %s and %s", stored, kind, value, because)
			}
			var f Fold
			f.Apply(Event{Task: &Task{ID: "t", Status: Status{State: AwaitingCompletion, ChangedAt: at},
				Products: []Product{product("a"), product("b")}}})
			f.Apply(got)
			if diff := cmp.Diff(tc.want, f.Task().Products); diff != "" {
				t.Errorf("products (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.withdrawn, f.Withdrawn); diff != "" {
				t.Errorf("withdrawn (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSnapshotKeepsWhatWasWithdrawn: it is for the fold alone, and in its stored form a snapshot is one like any other.
func TestSnapshotKeepsWhatWasWithdrawn(t *testing.T) {
	withdrawn := []Product{{ID: "a", DataItems: []DataItem{Text("1\n2")}}}
	whole := Event{Task: &Task{ID: "t", SessionID: "s",
		Status: Status{State: Working, ChangedAt: time.Date(2025, 9, 1, 12, 0, 0, 0, time.UTC)}}}
	plain := AppendEvent(nil, &whole)
	whole.Withdrawn = withdrawn
	stored := AppendEvent(nil, &whole)
	got, err := DecodeEvent(stored)
	if err != nil {
		t.Fatal(err)
	}
	var f Fold
	f.Apply(got)
	if diff := cmp.Diff(withdrawn, f.Withdrawn); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	kind, value, cause := SplitEvent(stored)
	if wantKind, wantValue, _ := SplitEvent(plain); kind != wantKind || string(value) != string(wantValue) ||
		cause != nil {
		t.Errorf("%q is taken apart as %q, %s and %s", stored, kind, value, cause)
	}
}

// TestOldLogKeepsItsProducts folds a log of the time before offers. Its pieces add to products of an earlier turn.
func TestOldLogKeepsItsProducts(t *testing.T) {
	const state = `{"state":"working","stateChangedAt":"2025-09-01T12:00:00+08:00"}`
	var f Fold
	for i, stored := range []string{
		`t{"type":"task","id":"t","status":{"state":"accepted","stateChangedAt":"2025-09-01T11:59:00+08:00"},` +
			`"sessionId":"s"}`,
		"s" + state,
		`c{"product":{"id":"p","dataItems":[{"type":"text","text":"one "}]},"append":false,"lastChunk":true}`,
		`s{"state":"awaiting-completion","stateChangedAt":"2025-09-01T12:01:00+08:00"}`,
		"s" + state + "\n" +
			`{"type":"message","id":"m","sentAt":"2025-09-01T12:02:00+08:00","senderRole":"leader","senderId":"l",` +
			`"command":"continue","dataItems":[]}`,
		`c{"product":{"id":"p","dataItems":[{"type":"text","text":"two"}]},"append":true,"lastChunk":true}`,
	} {
		ev, err := DecodeEvent([]byte(stored))
		if err != nil {
			t.Fatal(err)
		}
		ev.Seq = uint64(i + 1)
		f.Apply(ev)
	}
	if diff := cmp.Diff([]Product{{ID: "p", DataItems: []DataItem{Text("one two")}}}, f.Task().Products); diff != "" {
		t.Errorf("products (-want +got):\n%s", diff)
	}
}
