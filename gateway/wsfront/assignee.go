// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Assignees are the agents that connect to the gateway themselves, and the tasks that they work on. A task has one id
// for its owner and its assignee. One whose owner speaks another dialect has an id that only the assignee knows.
type Assignees interface {
	// Has reports whether an agent has, or had not long ago, a task with an id.
	Has(agent, id string) bool
	// Say hands the turn of a task what the agent calls, waits until it is stored, and returns the status that the task
	// has then.
	Say(ctx context.Context, agent, id, method string, params gjson.Result) (status string, err error)
	// Report hands it what the agent reports by a notification. It does not wait.
	Report(agent, id, method string, params gjson.Result) error
	// Task returns an open task of an agent, and Tasks all of them, whole.
	Task(agent, id string) ([]byte, error)
	Tasks(agent string) [][]byte
	// Connected sends an agent that has connected the events of all its open tasks. send sends one, and may wait.
	Connected(agent string, send func(event []byte))
}

// assigned returns the id of a task that the client works on as an agent, if the params of a request name one.
func (s *Session) assigned(params gjson.Result) (id string, ok bool) {
	v := params.Get("task_id")
	if v.Type != gjson.String || !s.worksOn(v.Str) {
		return "", false
	}
	return strings.Clone(v.Str), true
}

// worksOn reports whether the client works on a task as an agent, or did not long ago.
func (s *Session) worksOn(id string) bool {
	assignees := s.front.config.Assignees
	return assignees != nil && assignees.Has(s.AID, id)
}

// roleIn returns the role of the client in a task. An agent that connects has that of each AID under which it is
// fronted.
func (s *Session) roleIn(e *entry) role {
	r := e.role(s.AID)
	for _, aid := range s.serving().fronts[s.AID] {
		r = max(r, min(e.role(aid), assignee))
	}
	return r
}

// work executes a method by which an assignee says how a task stands.
func (s *Session) work(ctx context.Context, r *request) error {
	id, ok := s.assigned(r.Params)
	if !ok {
		c, err := s.find(ctx, r)
		if err == nil {
			err = s.admit(ctx, r, &c)
		}
		if err == nil {
			err = s.refuseWork(ctx, r.Method, &c)
		}
		return err
	}
	if r.Method == codec.Complete {
		if err := s.checkChildren(ctx, id); err != nil {
			return err
		}
	}
	status, err := s.front.config.Assignees.Say(ctx, s.AID, id, r.Method, r.Params)
	if err != nil {
		return err
	}
	return r.Reply(mustJSON(map[string]string{"task_id": id, "status": status}))
}

// refuseWork returns the error of a method of assignees for a task that the client does not work on now.
func (s *Session) refuseWork(ctx context.Context, method string, c *call) error {
	if c.entry.Assignee != s.AID && c.agent.Worker != s.AID {
		return codec.AccessDenied("only the assignee of the task may call %s", method)
	}
	if s.front.config.Index.ended(ctx, c.entry) {
		return s.endedError(ctx, c)
	}
	return task.Errorf(task.AgentUnavailable, "the agent does not work on this task now")
}

// checkChildren returns an error if a task has children that have not ended.
func (s *Session) checkChildren(ctx context.Context, id string) error {
	c, err := s.findID(ctx, id)
	if err != nil || c.entry == nil {
		return err
	}
	open, err := s.front.config.Index.openChildren(ctx, c.id)
	if err == nil && len(open) > 0 {
		err = codec.CompletionBlocked(open)
	}
	return err
}

// reported hands on what an agent reports about a task by a notification. What is not valid is dropped, since a
// notification has no answer.
func (s *Session) reported(method string, params gjson.Result) {
	if id, ok := s.assigned(params); ok {
		if err := s.front.config.Assignees.Report(s.AID, id, method, params); err != nil {
			s.front.config.Log.Debug("an event of an agent was dropped", "aid", s.AID, "task", id, "error", err)
		}
	}
}
