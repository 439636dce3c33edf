// SPDX-License-Identifier: Apache-2.0

package translatetest

import (
	"errors"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// answersArePaired: the client of one request sends its id, and refuses answers to others.
func answersArePaired(t *testing.T, c translate.Client, s translate.Server) {
	query := translate.Query{ID: "x7-1", Task: "t-1", Session: "s-1"}
	turn := agent.Turn{From: task.AwaitingInput, Ref: agent.Ref{Task: "t-1", Session: "s-1"},
		Message: task.Message{ID: "m-1", Command: task.Continue, DataItems: []task.DataItem{task.Text("hello")}}}
	paired := c.For(query)
	if paired.Name() != c.Name() {
		t.Errorf("the client of a request is of %s", paired.Name())
	}
	bodies := operations(c, &turn)
	for op := range bodies {
		if operations(paired, &turn)[op] == nil {
			t.Errorf("operation %d is not in the client of a request", op)
		}
	}
	ids := true
	for op, appendTo := range operations(paired, &turn) {
		if bodies[op] == nil {
			t.Errorf("operation %d is only in the client of a request", op)
		}
		req, bad := jsonrpc.Parse(appendTo(nil), jsonrpc.Limits{})
		if bad != nil || len(req.ID) == 0 {
			ids = false
		} else if string(req.ID) != `"x7-1"` {
			t.Errorf("operation %d has the id %s", op, req.ID)
		}
	}
	for _, tc := range []struct {
		name, id, task string
		other          bool
	}{
		{"the answer", "x7-1", "t-1", false},
		{"another request's", "x7-2", "t-1", ids},
		{"another request's that begins alike", "x7-12", "t-1", ids},
		{"another task's", "x7-1", "t-2", true},
		{"another request's about another task", "x7-2", "t-2", true},
	} {
		id := jsonrpc.ID(`"` + tc.id + `"`)
		tk := answered(task.Working, "text")
		tk.ID = tc.task
		_, err := c.For(query).Reply(s.AppendTask(nil, id, new(translate.Call), &tk), nil)
		checkPaired(t, tc.name, err, tc.other)
		pairedStream(t, tc.name, c, query, s.NewStream(id, new(translate.Call), &tk), &tk, tc.other)
		if _, other := c.(translate.StatusReader); other {
			continue
		}
		failure := s.AppendError(nil, id, task.Errorf(task.TaskNotFound, "there is none"))
		_, err = c.For(query).Reply(failure, nil)
		checkPaired(t, tc.name+", an error", err, ids && tc.id != query.ID)
		_, err = c.For(query).NewStream(nil).Event("", failure)
		checkPaired(t, tc.name+", an error in a stream", err, ids && tc.id != query.ID)
	}
	if _, other := c.(translate.StatusReader); !other {
		_, err := c.For(query).Reply(s.AppendError(nil, nil, task.Errorf(task.TaskNotFound, "there is none")), nil)
		if task.KindOf(err) != task.TaskNotFound {
			t.Errorf("an error of an agent that does not know the id is read as %v", err)
		}
	}
	if _, err := c.For(translate.Query{ID: query.ID}).Reply(
		s.AppendTask(nil, jsonrpc.ID(`"x7-1"`), new(translate.Call), new(answered(task.Working, ""))), nil); err != nil {
		t.Errorf("the name of a task that it is for the agent to name is refused: %v", err)
	}
}

// pairedStream reads the events of a stream until one is refused. None is read as a text before one has proven to
// belong to the request.
func pairedStream(
	t *testing.T, name string, c translate.Client, q translate.Query, out translate.Encoder, tk *task.Task, other bool,
) {
	in := c.For(q).NewStream(tk.Products)
	texts, _ := in.(translate.TextStream)
	chunk := &task.Chunk{Product: tk.Products[0], Append: true}
	for i, ev := range []task.Event{{Chunk: chunk}, {Chunk: chunk}, {Status: &tk.Status}} {
		ev.Seq = uint64(i + 1)
		f := out.Event(nil, &ev)
		if f.Data == nil {
			continue
		}
		if texts != nil && texts.Text(f.Name, f.Data, new(task.Pieces)) {
			if i == 0 || other {
				t.Errorf("%s: event %d is read as a text", name, i)
			}
			continue
		}
		_, err := in.Event(f.Name, f.Data)
		if checkPaired(t, name+", an event", err, other); err != nil {
			return
		}
	}
}

func checkPaired(t *testing.T, name string, err error, other bool) {
	t.Helper()
	if got := errors.Is(err, translate.ErrOtherAnswer); got != other {
		t.Errorf("%s is the answer to another request: %v, error %v", name, got, err)
	}
}
