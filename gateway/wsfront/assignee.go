// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"cmp"
	"context"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Assignees are the agents that connect to the gateway themselves, and the tasks that they work on. They have ids of
// their own for these tasks.
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
	assignees := s.front.config.Assignees
	v := params.Get("task_id")
	if assignees == nil || v.Type != gjson.String || !assignees.Has(s.AID, v.Str) {
		return "", false
	}
	return strings.Clone(v.Str), true
}

// executeAssigned answers a request of an agent about a task that it works on.
func (s *Session) executeAssigned(ctx context.Context, r *request, id string) error {
	assignees, index := s.front.config.Assignees, s.front.config.Index
	switch r.Method {
	case codec.Get:
		whole, err := assignees.Task(s.AID, id)
		if err != nil {
			return err
		}
		return r.Reply(whole)
	case codec.Accept, codec.Reject, codec.Complete, codec.Fail:
		if r.Method == codec.Complete {
			if err := s.checkChildren(ctx, id); err != nil {
				return err
			}
		}
		status, err := assignees.Say(ctx, s.AID, id, r.Method, r.Params)
		if err != nil {
			return err
		}
		return r.Reply(mustJSON(map[string]string{"task_id": id, "status": status}))
	case codec.Delegate:
		taskID, err := index.ofAgent(ctx, id)
		switch {
		case err != nil:
			return err
		case taskID == "":
			return codec.DelegationDenied("the owner of the task does not speak AUN")
		}
		c := call{id: taskID, role: assignee}
		if c.entry, err = index.get(ctx, taskID); err != nil || c.entry == nil {
			return cmp.Or(err, errGone(id))
		}
		_, leader, _ := logname.Split(c.entry.Log)
		c.peer = peerOf(leader)
		if err := s.reach(&c); err != nil {
			return err
		}
		return s.delegatePart(ctx, r, &c)
	}
	return codec.AccessDenied("only the owner of the task may call %s", r.Method)
}

// checkChildren returns an error if a task, by the id that its agent has for it, has children that have not ended.
func (s *Session) checkChildren(ctx context.Context, id string) error {
	index := s.front.config.Index
	taskID, err := index.ofAgent(ctx, id)
	if err != nil || taskID == "" {
		return err
	}
	open, err := index.openChildren(ctx, taskID)
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

// refuseAssignee answers a method of assignees for a task that the client does not work on.
func (s *Session) refuseAssignee(method string, e *entry) error {
	if e.role(s.AID) == assignee {
		return task.Errorf(task.AgentUnavailable, "the agent does not work on this task now")
	}
	return codec.AccessDenied("only the assignee of the task may call %s", method)
}
