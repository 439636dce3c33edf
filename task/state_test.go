// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// specTable is the state table of AIP v01.00 §4.2 as it stands there, in the wire's words. Rows 1 and 2 are one
// line there.
const specTable = `
1  |                     | start    | accepted
2  |                     | start    | rejected
3  | accepted            | -        | working
4  | accepted            | cancel   | canceled
5  | working             | -        | awaiting-completion
6  | working             | -        | awaiting-input
7  | working             | -        | failed
8  | working             | cancel   | canceled
9  | awaiting-input      | continue | working
10 | awaiting-input      | cancel   | canceled
11 | awaiting-input      | -        | canceled
12 | awaiting-completion | complete | completed
13 | awaiting-completion | continue | working
14 | awaiting-completion | cancel   | canceled
15 | awaiting-completion | -        | completed
16 | completed           | -        | -
17 | canceled            | -        | -
18 | failed              | -        | -
19 | rejected            | -        | -
`

func specRows(t *testing.T) (rows []row) {
	for line := range strings.Lines(strings.TrimSpace(specTable)) {
		f := strings.Split(line, "|")
		for i := range f {
			f[i] = strings.Trim(f[i], " \n-")
		}
		no, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row{no, State(f[1]), Command(f[2]), State(f[3])})
	}
	return rows
}

func TestTable(t *testing.T) {
	if d := cmp.Diff(specRows(t), table[:], cmp.AllowUnexported(row{})); d != "" {
		t.Error(d)
	}
}

var allStates = append([]State{None}, States()...)

func TestMovesAndCommands(t *testing.T) {
	rows := specRows(t)
	for _, from := range allStates {
		for _, to := range allStates {
			want := to != None && slices.ContainsFunc(rows, func(r row) bool { return r.from == from && r.to == to })
			if got := CanMove(from, to); got != want {
				t.Errorf("CanMove(%q, %q) = %v", from, to, got)
			}
		}
		for _, c := range append([]Command{NoCommand, "Start"}, Commands()...) {
			want := c != NoCommand && slices.ContainsFunc(rows, func(r row) bool { return r.from == from && r.command == c })
			if got := Applies(c, from); got != want {
				t.Errorf("Applies(%q, %q) = %v", c, from, got)
			}
		}
	}
}

func TestWords(t *testing.T) {
	terminal := []State{Completed, Canceled, Failed, Rejected}
	rests := append([]State{AwaitingInput, AwaitingCompletion}, terminal...)
	for _, s := range append([]State{"Working", "input-required"}, allStates...) {
		if got, want := s.Valid(), slices.Contains(States(), s); got != want {
			t.Errorf("%q.Valid() = %v", s, got)
		}
		if got, want := s.Terminal(), slices.Contains(terminal, s); got != want {
			t.Errorf("%q.Terminal() = %v", s, got)
		}
		if got, want := s.Settled(), slices.Contains(rests, s); got != want {
			t.Errorf("%q.Rests() = %v", s, got)
		}
	}
	for _, c := range append([]Command{NoCommand, "Start", "restream"}, Commands()...) {
		if got, want := c.Valid(), slices.Contains(Commands(), c); got != want {
			t.Errorf("%q.Valid() = %v", c, got)
		}
	}
}

func TestPath(t *testing.T) {
	type move struct{ from, to State }
	want := map[move][]State{
		{None, Accepted}: {Accepted}, {None, Rejected}: {Rejected},
		{None, Working}:                     {Accepted, Working},
		{None, Canceled}:                    {Accepted, Canceled},
		{None, AwaitingInput}:               {Accepted, Working, AwaitingInput},
		{None, AwaitingCompletion}:          {Accepted, Working, AwaitingCompletion},
		{None, Failed}:                      {Accepted, Working, Failed},
		{Accepted, Working}:                 {Working},
		{Accepted, Canceled}:                {Canceled},
		{Accepted, AwaitingInput}:           {Working, AwaitingInput},
		{Accepted, AwaitingCompletion}:      {Working, AwaitingCompletion},
		{Accepted, Failed}:                  {Working, Failed},
		{Working, AwaitingInput}:            {AwaitingInput},
		{Working, AwaitingCompletion}:       {AwaitingCompletion},
		{Working, Failed}:                   {Failed},
		{Working, Canceled}:                 {Canceled},
		{AwaitingInput, Working}:            {Working},
		{AwaitingInput, Canceled}:           {Canceled},
		{AwaitingInput, AwaitingCompletion}: {Working, AwaitingCompletion},
		{AwaitingInput, Failed}:             {Working, Failed},
		{AwaitingCompletion, Completed}:     {Completed},
		{AwaitingCompletion, Working}:       {Working},
		{AwaitingCompletion, Canceled}:      {Canceled},
		{AwaitingCompletion, AwaitingInput}: {Working, AwaitingInput},
		{AwaitingCompletion, Failed}:        {Working, Failed},
	}
	for _, from := range allStates {
		for _, to := range allStates {
			got := Path(from, to)
			if d := cmp.Diff(want[move{from, to}], got); d != "" {
				t.Errorf("Path(%q, %q):\n%s", from, to, d)
			}
			at := from
			for _, next := range got {
				if !CanMove(at, next) {
					t.Errorf("Path(%q, %q) moves from %q to %q", from, to, at, next)
				}
				at = next
			}
		}
	}
}
