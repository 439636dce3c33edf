// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"slices"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// delegate is task.delegate: it starts a task as a part of another one.
func (s *Session) delegate(ctx context.Context, r *request) error {
	c, err := s.find(ctx, r)
	// The gateway of the same agent decides when the new task is started.
	if err == nil && (c.unknown || c.role < assignee || c.role == owner && c.agent.AID != r.Params.Get("to").String()) {
		err = s.admit(ctx, r, &c)
	}
	switch {
	case err != nil:
		return err
	case c.role < assignee:
		return codec.DelegationDenied("only the owner and the assignee of a task may delegate it")
	case c.entry == nil:
		return codec.DelegationDenied("the owner of the task does not speak AUN")
	}
	if s.front.config.Index.ended(ctx, c.entry) {
		return s.endedError(ctx, &c)
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
		s.front.config.Connections.elsewhere(noticeTo{AID: aid, Method: codec.EventPrefix + codec.Delegated, Params: params,
			Task: e.Parent, Event: codec.Delegated})
		for _, other := range s.front.config.Connections.Of(aid) {
			if !notified[other] && other.follows(e.Parent, codec.Delegated) {
				notified[other] = true
				other.Notify(codec.EventPrefix+codec.Delegated, params)
			}
		}
	}
}

// children is task.children: a page of the tasks made of parts of a task. Without a limit, a page has all.
func (s *Session) children(ctx context.Context, r *request) error {
	c, err := s.find(ctx, r)
	if err == nil {
		err = s.admit(ctx, r, &c)
	}
	if err != nil {
		return err
	}
	limit, ok := jsonrpc.Int(r.Params.Get("limit"))
	if r.Params.Get("limit").Exists() && (!ok || limit < 1) {
		return task.Errorf(task.InvalidParams, "limit must be a whole number of 1 or more").WithField("params.limit")
	}
	var rest []string
	if c.entry != nil {
		rest = c.entry.Children
	}
	if cursor := r.Params.Get("cursor").String(); cursor != "" {
		at := slices.Index(rest, cursor)
		if at < 0 {
			return task.Errorf(task.InvalidParams, "the cursor was not made by this gateway").WithField("params.cursor")
		}
		rest = rest[at+1:]
	}
	type summary struct {
		TaskID   string `json:"task_id"`
		Parent   string `json:"parent_task_id"`
		Owner    string `json:"owner"`
		Assignee string `json:"assignee"`
		Status   string `json:"status"`
	}
	page := struct {
		Children []summary `json:"children"`
		Next     *string   `json:"next_cursor"`
		More     bool      `json:"has_more"`
	}{Children: []summary{}}
	for i, id := range rest {
		if ok && len(page.Children) == int(min(limit, maxChildren)) {
			page.Next, page.More = &rest[i-1], true
			break
		}
		child, err := s.findID(ctx, id)
		if err == nil && child.agent != c.agent {
			err = s.admit(ctx, r, &child)
		}
		var of partner.Head
		if err == nil {
			of, err = child.agent.Gateway.Head(ctx, child.entry.Log)
		}
		switch task.KindOf(err) {
		case task.TaskNotFound, task.AuthorizationFailed: // it was dropped, or is not for this client
			continue
		}
		if err != nil {
			return err
		}
		page.Children = append(page.Children, summary{id, c.id, child.entry.Owner, child.entry.Assignee,
			codec.StateName(of.State, child.agent.Confirm)})
	}
	return r.Reply(mustJSON(&page))
}
