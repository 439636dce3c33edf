// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// says returns the event of a state with words of the agent.
func says(s State, texts ...string) Event {
	st := &Status{State: s}
	for _, text := range texts {
		st.DataItems = append(st.DataItems, Text(text))
	}
	return Event{Status: st}
}

// causedBy returns an event with a Leader's message as its cause.
func causedBy(ev Event, id string, c Command) Event {
	ev.Cause = &Message{ID: id, SenderRole: Leader, Command: c}
	return ev
}

// begins returns the first event of a task.
func begins() Event {
	return causedBy(Event{Task: &Task{ID: "t", SessionID: "s", Status: Status{State: Accepted}}}, "start", Start)
}

// texts returns the texts of data items.
func texts(items []DataItem) (list []string) {
	for _, it := range items {
		list = append(list, it.Text+string(it.Data))
	}
	return list
}

// talk returns the messages of a history: the ids of the Leader's, and the words of the agent's.
func talk(t *Task) (list []string) {
	for _, m := range t.MessageHistory {
		if m.SenderRole == Leader {
			list = append(list, m.ID)
			continue
		}
		list = append(list, "agent: "+strings.Join(texts(m.DataItems), "|"))
	}
	return list
}

// TestSaid: the agent's words are in the history once it says something else, or its turn has settled, but for repeated
// ones.
func TestSaid(t *testing.T) {
	working := says(Working)
	goesOn := causedBy(working, "go on", Continue)
	data := Event{Status: &Status{State: Working, DataItems: []DataItem{{Kind: DataKind, Data: []byte(`{"tool":1}`)}}}}
	for name, tt := range map[string]struct {
		events []Event // behind the beginning
		talk   []string
		said   []string // in the turn
	}{
		"nothing":                  {[]Event{working, says(AwaitingCompletion)}, []string{"start"}, nil},
		"a message while it works": {[]Event{working, says(Working, "hm")}, []string{"start"}, []string{"hm"}},
		"in pieces": {[]Event{says(Working, "Hel"), says(Working, "lo")}, []string{"start", "agent: Hel"},
			[]string{"Hello"}},
		"in pieces, and settled": {[]Event{says(Working, "Hel"), says(Working, "lo"), says(AwaitingCompletion)},
			[]string{"start", "agent: Hel", "agent: lo"}, []string{"Hello"}},
		"all of them again": {[]Event{says(Working, "Hel"), says(Working, "lo"), says(AwaitingInput, "Hello"), goesOn},
			[]string{"start", "agent: Hel", "agent: lo", "go on"}, nil},
		"one of them again": {[]Event{says(Working, "which?"), says(AwaitingInput, "which?"), goesOn},
			[]string{"start", "agent: which?", "go on"}, nil},
		"in items": {[]Event{says(Working, "4", "2"), says(AwaitingCompletion)}, []string{"start", "agent: 4|2"},
			[]string{"4", "2"}},
		"with data between": {[]Event{says(Working, "a"), data, says(Working, "b"), says(AwaitingInput)},
			[]string{"start", "agent: a", `agent: {"tool":1}`, "agent: b"}, []string{"a", `{"tool":1}`, "b"}},
		"blank": {[]Event{says(Working, " \n"), says(AwaitingCompletion)}, []string{"start", "agent:  \n"}, nil},
		"an answer": {[]Event{says(Working, "hm"), says(AwaitingCompletion, "42"), says(Completed, "42")},
			[]string{"start", "agent: hm"}, []string{"hm"}},
		"an answer that repeats what it had so far": {[]Event{says(Working, "on"), says(Working, "one"),
			says(AwaitingCompletion, "one two")}, []string{"start"}, nil},
		"a failure": {[]Event{says(Working, "hm"), says(Failed)}, []string{"start", "agent: hm"}, []string{"hm"}},
		"while it waits to work": {[]Event{says(Accepted, "queued"), working, says(AwaitingCompletion)},
			[]string{"start", "agent: queued"}, nil},
		"a question and an answer": {[]Event{working, says(AwaitingInput, "which?"), goesOn, says(Working, "hm"),
			says(AwaitingCompletion)}, []string{"start", "agent: which?", "go on", "agent: hm"},
			[]string{"hm"}},
		"nothing in the second turn": {[]Event{says(Working, "hm"), says(AwaitingCompletion), goesOn,
			says(AwaitingCompletion)}, []string{"start", "agent: hm", "go on"}, nil},
		"completed by the Leader": {[]Event{working, says(AwaitingCompletion, "42"),
			causedBy(says(Completed), "fine", Complete)}, []string{"start", "fine"}, nil},
		"a message of its own": {[]Event{working, {Message: &Message{SenderRole: Partner, SentAt: time.Unix(9, 0),
			DataItems: []DataItem{Text("hi")}}}, says(AwaitingCompletion)}, []string{"start", "agent: hi"},
			[]string{"hi"}},
	} {
		t.Run(name, func(t *testing.T) {
			events := append([]Event{begins()}, tt.events...)
			for i := range events {
				if st := events[i].Status; st != nil {
					events[i].Status = &Status{State: st.State, DataItems: st.DataItems, ChangedAt: time.Unix(int64(i), 0)}
				}
			}
			for cut := range len(events) { // a snapshot in place of the first ones says the same
				f := folded(events[:cut]...)
				if cut > 0 {
					f = folded(Event{Task: new(*f.Task()), Withdrawn: f.Withdrawn})
				}
				for _, ev := range events[cut:] {
					f.Apply(ev)
				}
				if d := cmp.Diff(tt.talk, talk(f.Task())); d != "" {
					t.Errorf("after a snapshot of %d: (-want +got):\n%s", cut, d)
				}
				if d := cmp.Diff(tt.said, texts(f.Said()), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("after a snapshot of %d: (-want +got):\n%s", cut, d)
				}
			}
		})
	}
}

// folded returns the fold of events.
func folded(events ...Event) *Fold {
	f := new(Fold)
	for _, ev := range events {
		f.Apply(ev)
	}
	return f
}

// TestSaidIsAMessage: a history shows the agent's words as they were shown before.
func TestSaidIsAMessage(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	st := &Status{State: Working, ChangedAt: at, DataItems: []DataItem{Text("hm")}, Extensions: []byte(`{"a":1}`)}
	f := folded(begins(), Event{Status: st}, says(AwaitingInput, "which?"))
	want := Message{SentAt: at, SenderRole: Partner, DataItems: st.DataItems, Extensions: st.Extensions, TaskID: "t",
		SessionID: "s"}
	if d := cmp.Diff(want, f.Task().MessageHistory[1]); d != "" {
		t.Error(d)
	}
}

// TestManyRemarks: an agent's words beyond maxRemarks of a turn are one message. Its text grows at the cost of the
// addition; readers keep their copies.
func TestManyRemarks(t *testing.T) {
	f := folded(begins())
	var whole strings.Builder
	say := func(i int) {
		word := fmt.Sprint(i, " ")
		whole.WriteString(word)
		f.Apply(says(Working, word))
	}
	for i := range 3 * maxRemarks {
		say(i)
	}
	before := *f.Task()
	was := strings.Join(talk(&before), "\n")
	for i := range 1000 {
		say(i)
	}
	if strings.Join(talk(&before), "\n") != was {
		t.Error("what was read has changed")
	}
	f.Apply(says(AwaitingInput))
	if n := len(f.Task().MessageHistory); n != 1+maxRemarks {
		t.Errorf("there are %d messages", n)
	}
	said := ""
	for _, m := range f.Task().MessageHistory {
		said += strings.Join(texts(m.DataItems), "")
	}
	if said != whole.String() {
		t.Errorf("the history says %q", said)
	}
	if got := texts(f.Said()); len(got) != 1 || got[0] != whole.String() {
		t.Errorf("in the turn was said %q", got)
	}
	f.Apply(causedBy(says(Working), "go on", Continue))
	f.Apply(says(Working, "again"))
	f.Apply(says(AwaitingCompletion))
	if last := f.Task().MessageHistory[maxRemarks+2:]; len(last) != 1 || last[0].DataItems[0].Text != "again" {
		t.Errorf("the second turn says %+v", last)
	}
}

// TestRemarksAreBounded: of an agent's words, the last part is kept, and of the Leader's messages all.
func TestRemarksAreBounded(t *testing.T) {
	for _, size := range []int{1, 100, 3000, 20_000} {
		f := folded(begins())
		f.MaxSaid = 10_000
		for turn := range 3 {
			for i := range 300 {
				f.Apply(says(Working, fmt.Sprintf("%d-%d.%s", turn, i, strings.Repeat("x", size))))
				if n := f.Size(); n > 12_000+3*int64(size)+int64(turn)*1000 {
					t.Fatalf("with pieces of %d bytes, the task has %d bytes", size, n)
				}
			}
			f.Apply(says(AwaitingInput, "?"))
			f.Apply(causedBy(says(Working), fmt.Sprint("m", turn), Continue))
		}
		var leader []string
		for _, line := range talk(f.Task()) {
			if !strings.HasPrefix(line, "agent: ") {
				leader = append(leader, line)
			}
		}
		if d := cmp.Diff([]string{"start", "m0", "m1", "m2"}, leader); d != "" {
			t.Error(d)
		}
	}
}

// TestManyItems: an agent's data beyond maxRemarks of a turn is kept as far as it can be read at a steady cost, the
// newest part of it.
func TestManyItems(t *testing.T) {
	f := folded(begins())
	say := func(i int) {
		f.Apply(Event{Status: &Status{State: Working, DataItems: []DataItem{{Kind: DataKind, Data: fmt.Append(nil, i)}}}})
	}
	for i := range 3000 {
		say(i)
		all := f.Task().MessageHistory
		last := all[len(all)-1].DataItems
		if n := len(last); n > maxLastItems || i > 0 && string(last[n-1].Data) != fmt.Sprint(i-1) {
			t.Fatalf("after %d, the last message has %d items, and ends with %s", i, n, last[n-1].Data)
		}
	}
	want := int64(0)
	for _, m := range f.Task().MessageHistory[1:] {
		want += m.Size()
	}
	if f.said.size != want {
		t.Errorf("what was said counts as %d bytes and has %d", f.said.size, want)
	}
}

// TestRemarksCostNoCopies: a turn of many words costs no more for each piece than one of few.
func TestRemarksCostNoCopies(t *testing.T) {
	perPiece := func(n int) float64 {
		return testing.AllocsPerRun(1, func() {
			f := folded(begins())
			for i := range n {
				f.Apply(says(Working, "0123456789"[i%10:]))
			}
		}) / float64(n)
	}
	if few, many := perPiece(1000), perPiece(20_000); many > few {
		t.Errorf("a piece costs %v allocations, and %v where there are many", few, many)
	}
}
