// SPDX-License-Identifier: Apache-2.0

// Package history keeps what clients did with a task, and what they were answered, and decides by porcupine whether
// there is an order of one thing after the other that explains all of it: whether the history is linearizable.
//
// A task is a log. A command adds its message to it, once; an agent adds states and text; a client is answered with
// what the task is then: all of it where it gets the task, the last state and the text where it gives a command. So a
// command is two operations with the same times: a write of its message, and a read of the answer. What a read has
// seen, all later ones must see, byte for byte, on every gateway.
//
// A command may be ignored, and one without an answer may be carried out at any later time, or never. Since a log loses
// nothing, the task as it is in the end says which, and which states came before the one that a command was answered
// with: so no operation has to be guessed, and a check takes microseconds.
package history

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/aip-gateway/aip-gateway/task"
)

// Op is a call of one client, at one gateway.
type Op struct {
	Client   int          `json:"client"`
	Gateway  int          `json:"gateway"` // -1 for a group
	Command  task.Command `json:"command"`
	Message  string       `json:"message,omitempty"` // its id; none for a get
	Called   int64        `json:"called"`            // nanoseconds, by the clock of the process that checks
	Returned int64        `json:"returned"`
	Error    string       `json:"error,omitempty"` // what was answered instead of a task; then it may have been executed
	Seen     *Seen        `json:"seen,omitempty"`  // the task that was answered
}

// Seen is a task as a client was shown it; empty if it does not exist.
type Seen struct {
	Messages string `json:"messages,omitempty"` // ids, each with a semicolon
	States   string `json:"states,omitempty"`   // likewise, with the times at which they were entered
	Text     string `json:"text,omitempty"`     // of the products
	Last     string `json:"last,omitempty"`     // one of States; the others and the messages are not known then
}

// See returns what a client sees of a task. whole says that it has its history, as the answer to a get.
func See(t *task.Task, whole bool) *Seen {
	var s Seen
	for _, p := range t.Products {
		for _, item := range p.DataItems {
			s.Text += item.Text
		}
	}
	if !whole {
		s.Last = entered(&t.Status)
		return &s
	}
	for _, m := range t.MessageHistory {
		if m.SenderRole == task.Leader {
			s.Messages += m.ID + ";"
		}
	}
	for i := range t.StatusHistory {
		s.States += entered(&t.StatusHistory[i])
	}
	return &s
}

func entered(s *task.Status) string {
	return string(s.State) + "@" + s.ChangedAt.UTC().Format(time.RFC3339Nano) + ";"
}

// has reports whether a message is in the history of what was seen.
func (s *Seen) has(message string) bool { return strings.Contains(";"+s.Messages, ";"+message+";") }

// Task is the history of one task. Its methods may be called by any number of goroutines at once.
type Task struct {
	ID string

	mu  sync.Mutex
	ops []Op
}

// Add adds a call that has returned.
func (t *Task) Add(op Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ops = append(t.ops, op)
}

// MarshalJSON implements json.Marshaler. It is what is exported.
func (t *Task) MarshalJSON() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return json.Marshal(struct {
		Task string `json:"task"`
		Ops  []Op   `json:"ops"`
	}{t.ID, t.ops})
}

// input is what an operation of the model does: it writes a message, or reads.
type input struct {
	op    Op
	write bool
}

// operations returns the history as operations of the model. The get that has seen most has returned the task as it is
// in the end; of several that have seen as much, the last one.
func (t *Task) operations() (all []porcupine.Operation) {
	t.mu.Lock()
	ops := slices.Clone(t.ops)
	t.mu.Unlock()
	end, at := new(Seen), int64(0)
	for _, op := range ops {
		if op.Seen == nil || op.Seen.Last != "" {
			continue
		}
		if cmp.Or(cmp.Compare(len(op.Seen.Messages), len(end.Messages)), cmp.Compare(len(op.Seen.States), len(end.States)),
			cmp.Compare(op.Returned, at)) > 0 {
			end, at = op.Seen, op.Returned
		}
	}
	for _, op := range ops {
		add := func(write bool, seen *Seen, returned int64) {
			all = append(all, porcupine.Operation{ClientId: op.Client, Input: input{op, write}, Output: seen,
				Call: op.Called, Return: returned, Metadata: op.Error})
		}
		returned := op.Returned
		if op.Seen == nil {
			returned = math.MaxInt64
		}
		if op.Message != "" && end.has(op.Message) {
			add(true, op.Seen, returned)
		}
		if op.Seen != nil {
			add(false, op.Seen.completed(end), returned)
		}
	}
	return all
}

// completed adds the states that came before the last one that was seen.
func (s *Seen) completed(end *Seen) *Seen {
	if s.Last == "" {
		return s
	}
	full := *s
	before, _, _ := strings.Cut(";"+end.States, ";"+s.Last)
	full.States = strings.TrimPrefix(before+";", ";") + s.Last // which is no legal history where the end does not have it
	return &full
}
