// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/aip-gateway/aip-gateway/task"
)

// checkLimit is how long the check of one task may take. It takes far less than a millisecond as a rule.
const checkLimit = time.Minute

// state is a task as its clients see it, to which writes and agents add.
type state struct {
	Seen
	ended bool // by a command
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, in, out any) (bool, any) {
		now, i := before.(state), in.(input)
		if i.write {
			return true, now.write(&i.op)
		}
		return now.read(&i.op, out.(*Seen))
	},
	DescribeOperation: func(in, out any) string {
		i := in.(input)
		at := fmt.Sprintf(" at gateway %d", i.op.Gateway)
		if i.op.Gateway < 0 {
			at = " in its group"
		}
		switch {
		case i.write && out.(*Seen) == nil:
			return fmt.Sprintf("%s %s%s, without an answer", i.op.Command, i.op.Message, at)
		case i.write:
			return fmt.Sprintf("%s %s%s", i.op.Command, i.op.Message, at)
		}
		return fmt.Sprintf("%s%s → %s", i.op.Command, at, describe(*out.(*Seen)))
	},
	DescribeState: func(s any) string { return describe(s.(state).Seen) },
	DescribeOperationMetadata: func(failure any) string {
		s, _ := failure.(string)
		return s
	},
}

func describe(s Seen) string { return fmt.Sprintf("%s | %s | %q", s.Messages, s.States, s.Text) }

// write adds the message of a command, unless the task has it: the command was sent before.
func (s state) write(op *Op) state {
	if s.has(op.Message) {
		return s
	}
	s.Messages += op.Message + ";"
	switch op.Command {
	case task.Continue:
		s.Text = "" // the products of the turns before are withdrawn
	case task.Complete, task.Cancel:
		s.ended = true
	}
	return s
}

// read reports whether a task may be seen so after it was seen as it is now, and returns what it is then. The agent may
// have added states and text meanwhile, but messages are writes of their own.
func (s state) read(op *Op, seen *Seen) (bool, any) {
	ok := strings.HasPrefix(seen.States, s.States) && strings.HasPrefix(seen.Text, s.Text) && legal(seen.States, s.ended)
	if seen.Last == "" {
		ok = ok && seen.Messages == s.Messages && (seen.States == "") == (seen.Messages == "")
	}
	s.States, s.Text = seen.States, seen.Text
	return ok, s
}

// legal reports whether states follow one another as AIP has it (AIP v01.00 §4.2), and have come to an end if the task
// has. A task that does not exist has none.
func legal(states string, ended bool) bool {
	last := task.None
	for states != "" {
		var entry string
		entry, states, _ = strings.Cut(states, ";")
		name, _, _ := strings.Cut(entry, "@")
		if !task.CanMove(last, task.State(name)) {
			return false
		}
		last = task.State(name)
	}
	return !ended || last.Terminal()
}

// Check returns an error if the history of a task is not linearizable. It draws the history into a file in a directory,
// which the error names.
func (t *Task) Check(dir string) error {
	result, info := porcupine.CheckOperationsVerbose(model, t.operations(), checkLimit)
	if result == porcupine.Ok {
		return nil
	}
	path := filepath.Join(dir, strings.Map(safe, t.ID)+".html")
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("the history of %s is not linearizable (%s), and cannot be drawn: %w", t.ID, result, err)
	}
	defer file.Close()
	if err := porcupine.Visualize(model, info, file); err != nil {
		return fmt.Errorf("the history of %s is not linearizable (%s), and cannot be drawn: %w", t.ID, result, err)
	}
	return fmt.Errorf("the history of %s is not linearizable (%s); it is drawn in %s", t.ID, result, path)
}

// safe returns a character as it can stand in a name of a file.
func safe(r rune) rune {
	if r == '/' || r == '\\' || r < ' ' {
		return '_'
	}
	return r
}
