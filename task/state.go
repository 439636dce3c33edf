// SPDX-License-Identifier: Apache-2.0

package task

// State is a state of a Task (AIP v01.00 §4.2). The values are those of AIP's JSON.
type State string

// The eight states of AIP v01.00 §4.2, and None for a task that does not exist yet.
const (
	None               State = ""
	Accepted           State = "accepted"
	Working            State = "working"
	AwaitingInput      State = "awaiting-input"
	AwaitingCompletion State = "awaiting-completion"
	Completed          State = "completed"
	Canceled           State = "canceled"
	Failed             State = "failed"
	Rejected           State = "rejected"
)

// States lists every state a Task can be in, in the order of AIP v01.00 §4.2.
func States() []State {
	return []State{Accepted, Working, AwaitingInput, AwaitingCompletion, Completed, Canceled, Failed, Rejected}
}

// Valid reports whether s is one of the eight states.
func (s State) Valid() bool {
	switch s {
	case Accepted, Working, AwaitingInput, AwaitingCompletion, Completed, Canceled, Failed, Rejected:
		return true
	}
	return false
}

// Terminal reports whether nothing can follow s (rows 16 to 19).
func (s State) Terminal() bool {
	switch s {
	case Completed, Canceled, Failed, Rejected:
		return true
	}
	return false
}

// Command is a command of a Leader (AIP v01.00 §4.3).
type Command string

// The six commands of AIP v01.00 §4.3.
const (
	NoCommand Command = ""
	Get       Command = "get"
	Start     Command = "start"
	Continue  Command = "continue"
	Cancel    Command = "cancel"
	Complete  Command = "complete"
	ReStream  Command = "re-stream"
)

// Commands lists every command, in the order of AIP v01.00 §4.3.
func Commands() []Command {
	return []Command{Get, Start, Continue, Cancel, Complete, ReStream}
}

// Valid reports whether c is one of the six commands.
func (c Command) Valid() bool {
	switch c {
	case Get, Start, Continue, Cancel, Complete, ReStream:
		return true
	}
	return false
}

// row is a row of the state table of AIP v01.00 §4.2. A row without a command is a move of the Partner; a row without
// a next state marks a final state.
type row struct {
	no      int
	from    State
	command Command
	to      State
}

// table is the state table of AIP v01.00 §4.2, complete and in its order. It is the only source of moves.
var table = [...]row{
	{1, None, Start, Accepted},
	{2, None, Start, Rejected},
	{3, Accepted, NoCommand, Working},
	{4, Accepted, Cancel, Canceled},
	{5, Working, NoCommand, AwaitingCompletion},
	{6, Working, NoCommand, AwaitingInput},
	{7, Working, NoCommand, Failed},
	{8, Working, Cancel, Canceled},
	{9, AwaitingInput, Continue, Working},
	{10, AwaitingInput, Cancel, Canceled},
	{11, AwaitingInput, NoCommand, Canceled},
	{12, AwaitingCompletion, Complete, Completed},
	{13, AwaitingCompletion, Continue, Working},
	{14, AwaitingCompletion, Cancel, Canceled},
	{15, AwaitingCompletion, NoCommand, Completed},
	{16, Completed, NoCommand, None},
	{17, Canceled, NoCommand, None},
	{18, Failed, NoCommand, None},
	{19, Rejected, NoCommand, None},
}

// CanMove reports whether the table has a row from one state to the other.
func CanMove(from, to State) bool {
	for _, r := range table {
		if r.from == from && r.to == to && to != None {
			return true
		}
	}
	return false
}

// Applies reports whether the table has a row for a command in a state. If not, the command is ignored and answered
// with the unchanged Task.
func Applies(c Command, s State) bool {
	for _, r := range table {
		if r.from == s && r.command == c && c != NoCommand {
			return true
		}
	}
	return false
}

// Path returns the states on the way to a state, with it as the last, for an agent's report of a state not to be
// entered in one move: a finished agent has also worked. It returns nil if there is no legal path, or if the task is in
// that state. The path is not to be changed.
func Path(from, to State) []State { return paths[[2]State{from, to}] }

// paths are all paths, by their ends.
var paths = func() map[[2]State][]State {
	all := make(map[[2]State][]State)
	for _, from := range append(States(), None) {
		for _, to := range States() {
			all[[2]State{from, to}] = pathOf(from, to)
		}
	}
	return all
}()

func pathOf(from, to State) []State {
	switch {
	case from == to:
		return nil
	case CanMove(from, to):
		return []State{to}
	case from == None:
		if rest := pathOf(Accepted, to); rest != nil {
			return append([]State{Accepted}, rest...)
		}
	case CanMove(from, Working) && CanMove(Working, to):
		return []State{Working, to}
	}
	return nil
}

// Settled reports whether a turn may be over after reaching s: nothing follows until the Leader acts, unless the agent
// resumes by itself.
func (s State) Settled() bool {
	return s == AwaitingInput || s == AwaitingCompletion || s.Terminal()
}
