// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Assignees are the agents that connect to the gateway themselves, and the tasks that they work on. They have ids of
// their own for these tasks.
type Assignees interface {
	// Has reports whether an agent has, or had not long ago, a task with an id.
	Has(agent, id string) bool
	// Say hands the turn of a task what the agent calls or reports, and returns the status that the task has then.
	Say(agent, id, method string, params gjson.Result) (status string, err error)
	// Task returns an open task of an agent, and Tasks all of them, whole.
	Task(agent, id string) ([]byte, error)
	Tasks(agent string) [][]byte
	// Connected sends an agent that has connected the events of all its open tasks. send sends one.
	Connected(agent string, send func(event []byte))
}

// assigned returns the id of a task that the client works on as an agent, if the params of a request name one.
func (s *Session) assigned(params gjson.Result) (id string, ok bool) {
	assignees := s.front.config.Assignees
	v := params.Get("task_id")
	if assignees == nil || v.Type != gjson.String || !assignees.Has(s.AID, v.Str) {
		return "", false
	}
	return strings.Clone(v.Str), true
}

// executeAssigned answers a request of an agent about a task that it works on.
func (s *Session) executeAssigned(r *aun.Request, id string) error {
	assignees := s.front.config.Assignees
	switch r.Method {
	case codec.Get:
		whole, err := assignees.Task(s.AID, id)
		if err != nil {
			return err
		}
		return r.Reply(whole)
	case codec.Accept, codec.Reject, codec.Complete, codec.Fail:
		status, err := assignees.Say(s.AID, id, r.Method, r.Params)
		if err != nil {
			return err
		}
		return r.Reply(mustJSON(map[string]string{"task_id": id, "status": status}))
	case codec.Delegate:
		return codec.DelegationDenied("a task of an agent that connects here can be delegated by its owner only")
	}
	return codec.AccessDenied("only the owner of the task may call %s", r.Method)
}

// reported hands on what an agent reports about a task by a notification. What is not valid is dropped, since a
// notification has no answer.
func (s *Session) reported(method string, params gjson.Result) {
	if id, ok := s.assigned(params); ok {
		if _, err := s.front.config.Assignees.Say(s.AID, id, method, params); err != nil {
			s.front.config.Log.Debug("an event of an agent was dropped", "aid", s.AID, "task", id, "error", err)
		}
	}
}

// refuseAssignee answers a method of assignees for a task that the client does not work on.
func (s *Session) refuseAssignee(method string, e *entry) error {
	if e.role(s.AID) == assignee {
		return task.Errorf(task.AgentUnavailable, "the agent does not work on this task now")
	}
	return codec.AccessDenied("only the assignee of the task may call %s", method)
}
