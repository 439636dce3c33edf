// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Assignees are the agents connecting to the gateway themselves, and their tasks. A task has one id for its owner and
// its assignee. If its owner speaks another dialect, it has an id known only to the assignee.
type Assignees interface {
	// Has reports whether an agent has, or had not long ago, a task with an id.
	Has(agent, id string) bool
	// Say hands the agent's call to the turn of a task, waits until it is stored, and returns the task's status then.
	Say(ctx context.Context, agent, id, method string, params gjson.Result) (status string, err error)
	// Report hands it the agent's report from a notification. It does not wait.
	Report(agent, id, method string, params gjson.Result) error
	// Task returns an open task of an agent, and Tasks all of them, whole.
	Task(agent, id string) ([]byte, error)
	Tasks(agent string) [][]byte
	// Connected sends the events of all its open tasks to a newly connected agent. send sends one, and may wait.
	Connected(agent string, send func(event []byte))
}

// assigned returns the id of a task with the client as its agent, if the params of a request name one.
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

// roleIn returns the role of the client in a task. A connecting agent has the role of each AID under which it is
// fronted.
func (s *Session) roleIn(e *entry) role {
	r := e.role(s.AID)
	for _, aid := range s.serving().fronts[s.AID] {
		r = max(r, min(e.role(aid), assignee))
	}
	return r
}

// work executes a method of an assignee about the state of a task.
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

// checkChildren returns an error if a task has open children.
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

// reported hands on an agent's report about a task from a notification. An invalid one is dropped, since a notification
// has no answer.
func (s *Session) reported(method string, params gjson.Result) {
	if id, ok := s.assigned(params); ok {
		if err := s.front.config.Assignees.Report(s.AID, id, method, params); err != nil {
			s.front.config.Log.Debug("an event of an agent was dropped", "aid", s.AID, "task", id, "error", err)
		}
	}
}
