// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// delegate is task.delegate: the owner or the assignee of a task makes another one of a part of it.
func (s *Session) delegate(ctx context.Context, r *request) error {
	c, err := s.find(ctx, r.Params)
	if err != nil {
		return err
	}
	return s.delegatePart(ctx, r, &c)
}

// delegatePart delegates a part of a task.
func (s *Session) delegatePart(ctx context.Context, r *request, c *call) error {
	if c.role < assignee {
		return codec.DelegationDenied("only the owner and the assignee of a task may delegate it")
	}
	if s.front.config.Index.ended(ctx, c.entry) {
		return s.endedError(ctx, c)
	}
	e, err := s.newEntry(r.Params)
	if err != nil {
		return err
	}
	e.Parent = c.id
	e.addParticipant(c.entry.Owner)
	e.addParticipant(c.entry.Assignee)
	if e.Visibility == codec.Private && len(e.Participants) > 0 {
		e.Visibility = codec.Shared
	}
	return s.start(ctx, r, e)
}

// delegated notifies the followers of a task that it has a child.
func (s *Session) delegated(e *entry, child string) {
	params := mustJSON(map[string]any{"task_id": e.Parent, "child_task_id": child, "assignee": e.Assignee,
		"owner": e.Owner})
	notified := map[*Session]bool{}
	for _, aid := range append([]string{e.Owner}, e.Participants...) {
		for _, other := range s.front.config.Connections.Of(aid) {
			if !notified[other] && other.follows(e.Parent, codec.Delegated) {
				notified[other] = true
				other.Notify(codec.EventPrefix+codec.Delegated, params)
			}
		}
	}
}

// children is task.children.
func (s *Session) children(ctx context.Context, r *request) error {
	c, err := s.find(ctx, r.Params)
	if err != nil {
		return err
	}
	type summary struct {
		TaskID   string `json:"task_id"`
		Parent   string `json:"parent_task_id"`
		Owner    string `json:"owner"`
		Assignee string `json:"assignee"`
		Status   string `json:"status"`
	}
	list := []summary{}
	for _, id := range c.entry.Children {
		child, err := s.findID(ctx, id)
		if task.KindOf(err) == task.TaskNotFound { // it was dropped, or is not for this client
			continue
		}
		if err != nil {
			return err
		}
		status, err := s.statusOf(ctx, &child)
		if err != nil {
			return err
		}
		list = append(list, summary{id, c.id, child.entry.Owner, child.entry.Assignee, status})
	}
	return r.Reply(mustJSON(map[string]any{"children": list}))
}

// statusOf returns the status of a task.
func (s *Session) statusOf(ctx context.Context, c *call) (string, error) {
	var q gateway.Request
	defer q.Release()
	params := append(task.AppendString([]byte(`{"task_id":`), c.id), '}')
	a := s.begin(ctx, &q, jsonrpc.ID("0"), c, codec.Server{}, codec.Get, string(params))
	if a.Err != nil {
		return "", a.Err
	}
	return gjson.GetBytes(a.Reply, "result.status").String(), nil
}
