// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

// seen returns a task with messages, states and text, each list separated by spaces.
func seen(messages, states, text string) *Seen {
	end := func(list string) string {
		if list == "" {
			return ""
		}
		return strings.ReplaceAll(list, " ", ";") + ";"
	}
	return &Seen{Messages: end(messages), States: end(states), Text: text}
}

// last returns the answer to a command.
func last(state, text string) *Seen { return &Seen{Last: state + ";", Text: text} }

// call returns a call between two times. A get has no message; an answer that is missing was lost.
func call(called, returned int64, command task.Command, message string, answer *Seen) Op {
	op := Op{Client: int(called) % 3, Gateway: int(called) % 3, Command: command, Message: message, Called: called,
		Returned: returned, Seen: answer}
	if answer == nil {
		op.Error = "lost"
	}
	return op
}

// final is a get in the end.
func final(messages, states, text string) Op {
	return call(1000, 1001, task.Get, "", seen(messages, states, text))
}

const (
	begun = "accepted@1 working@2"
	ready = begun + " awaiting-completion@3"
	done  = ready + " completed@4"
)

// TestCheck has histories that are linearizable, and forged ones, each of which is found and drawn.
func TestCheck(t *testing.T) {
	start := call(10, 20, task.Start, "s", last("working@2", ""))
	for _, tc := range []struct {
		name  string
		wrong bool
		ops   []Op
	}{
		{name: "a life", ops: []Op{start,
			call(25, 30, task.Get, "", seen("s", ready, "a")),
			call(40, 50, task.Complete, "c", last("completed@4", "a")), final("s c", done, "a")}},
		{name: "a get that overlaps may see the task before or after", ops: []Op{start,
			call(40, 50, task.Complete, "c", last("completed@4", "a")),
			call(41, 43, task.Get, "", seen("s", ready, "a")),
			call(44, 45, task.Get, "", seen("s c", done, "a"))}},
		{name: "a start at two gateways", ops: []Op{start,
			call(11, 30, task.Start, "s", last("awaiting-completion@3", "a")), final("s", ready, "a")}},
		{name: "a start waits for its turn", ops: []Op{
			call(10, 100, task.Start, "s", last("canceled@9", "")),
			call(20, 30, task.Cancel, "x", last("canceled@9", "")), final("s x", begun+" canceled@9", "")}},
		{name: "a command without an answer is executed later", ops: []Op{start,
			call(30, 31, task.Complete, "c", nil),
			call(40, 41, task.Get, "", seen("s", ready, "a")),
			call(50, 51, task.Get, "", seen("s c", done, "a"))}},
		{name: "a command without an answer is never executed", ops: []Op{start,
			call(30, 31, task.Complete, "c", nil),
			call(40, 41, task.Get, "", seen("s", ready, "a"))}},
		{name: "of two gets at once the one that has seen less returns later", ops: []Op{start,
			call(30, 31, task.Complete, "c", nil),
			call(40, 60, task.Get, "", seen("s", ready, "a")),
			call(41, 59, task.Get, "", seen("s c", done, "a"))}},
		{name: "of two commands one is ignored", ops: []Op{start,
			call(30, 50, task.Complete, "c", last("completed@4", "a")),
			call(30, 60, task.Cancel, "x", last("completed@4", "a")), final("s c", done, "a")}},
		{name: "a task is not there before its start", ops: []Op{call(1, 2, task.Get, "", seen("", "", "")),
			start, final("s", begun, "")}},
		{name: "a continue withdraws the products", ops: []Op{start,
			call(25, 30, task.Get, "", seen("s", ready, "a")),
			call(40, 50, task.Continue, "t", last("working@5", "")),
			call(60, 70, task.Get, "", seen("s t", ready+" working@5 awaiting-completion@6", "b"))}},

		{name: "a read is stale", wrong: true, ops: []Op{start,
			call(30, 40, task.Complete, "c", last("completed@4", "a")),
			call(50, 60, task.Get, "", seen("s", ready, "a"))}},
		{name: "an acknowledged task is lost", wrong: true, ops: []Op{start, call(30, 40, task.Get, "", seen("", "", ""))}},
		{name: "an acknowledged command is lost", wrong: true, ops: []Op{start,
			call(30, 40, task.Complete, "c", last("completed@4", "a")),
			call(50, 60, task.Get, "", seen("s", ready, "a")),
			call(70, 80, task.Get, "", seen("s", ready, "a"))}},
		{name: "a message is in the task twice", wrong: true, ops: []Op{start,
			call(11, 30, task.Start, "s", last("working@2", "")), final("s s", begun, "")}},
		{name: "a message that nobody sent", wrong: true, ops: []Op{start,
			call(30, 40, task.Get, "", seen("s x", begun+" canceled@3", ""))}},
		{name: "two gateways have stamped a state", wrong: true, ops: []Op{start,
			call(30, 40, task.Get, "", seen("s", "accepted@1 working@2 awaiting-completion@3", "a")),
			call(50, 60, task.Get, "", seen("s", "accepted@1 working@2 awaiting-completion@4", "a"))}},
		{name: "text that was shown is gone", wrong: true, ops: []Op{start,
			call(30, 40, task.Get, "", seen("s", begun, "a b")),
			call(50, 60, task.Get, "", seen("s", begun, "a"))}},
		{name: "two readers see two orders", wrong: true, ops: []Op{start,
			call(30, 60, task.Continue, "x", last("working@2", "")),
			call(30, 60, task.Continue, "y", last("working@2", "")),
			call(70, 80, task.Get, "", seen("s x y", begun, "")), final("s y x", begun, "")}},
		{name: "the answer to a command is stale", wrong: true, ops: []Op{start,
			call(30, 40, task.Complete, "c", last("completed@4", "a")),
			call(50, 60, task.Cancel, "x", last("awaiting-completion@3", "a")), final("s c", done, "a")}},
		{name: "a command was answered with a state that is nowhere else", wrong: true, ops: []Op{start,
			call(30, 40, task.Cancel, "x", last("canceled@3", "a")), final("s c", done, "a")}},
		{name: "a task that was canceled and completed", wrong: true, ops: []Op{start,
			call(30, 50, task.Get, "", seen("s", done+" canceled@5", "a"))}},
		{name: "a command without an answer was seen before it was made", wrong: true, ops: []Op{start,
			call(30, 40, task.Get, "", seen("s c", done, "a")),
			call(50, 60, task.Complete, "c", nil), final("s c", done, "a")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h, dir := &Task{ID: "a/b"}, t.TempDir()
			for _, op := range tc.ops {
				h.Add(op)
			}
			err := h.Check(dir)
			if (err != nil) != tc.wrong {
				t.Fatalf("the check says %v", err)
			}
			if !tc.wrong {
				return
			}
			_, path, _ := strings.Cut(err.Error(), "drawn in ")
			if drawing, err := os.ReadFile(path); err != nil || !bytes.Contains(drawing, []byte("at gateway")) {
				t.Errorf("the drawing: %v", err)
			}
			if exported, err := json.Marshal(h); err != nil || !bytes.Contains(exported, []byte(`"returned":20`)) {
				t.Errorf("exported: %s, %v", exported, err)
			}
		})
	}
}

// TestSee: what is compared is all that clients must agree on.
func TestSee(t *testing.T) {
	working := task.Status{State: task.Working}
	x := &task.Task{
		Status:         working,
		MessageHistory: []task.Message{{ID: "s", SenderRole: task.Leader}, {ID: "c", SenderRole: task.Leader}},
		StatusHistory:  []task.Status{{State: task.Accepted}, working},
		Products:       []task.Product{{DataItems: []task.DataItem{task.Text("a"), task.Text("b")}}},
	}
	const began = "working@0001-01-01T00:00:00Z;"
	for whole, want := range map[bool]Seen{
		true:  {Messages: "s;c;", States: "accepted@0001-01-01T00:00:00Z;" + began, Text: "ab"},
		false: {Last: began, Text: "ab"},
	} {
		if got := See(x, whole); *got != want {
			t.Errorf("a task is seen as %+v, want %+v", *got, want)
		}
	}
}
