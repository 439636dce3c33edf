// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// taskFilterOf reads a filter of tasks from a query.
func taskFilterOf(q url.Values) (f partner.TaskFilter, err error) {
	f.Partner, f.Leader, f.Task, f.After = q.Get("partner"), q.Get("leader"), q.Get("task"), q.Get("after")
	if f.States, err = statesOf(q); err != nil {
		return f, err
	}
	for name, into := range map[string]*time.Duration{"min_age": &f.MinAge, "max_age": &f.MaxAge} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		if *into, err = caddy.ParseDuration(text); err != nil || *into <= 0 {
			return f, task.Errorf(task.InvalidParams, "%s is %q, but must be a duration such as 90s, 10m or 2d",
				name, text)
		}
	}
	f.Limit, err = readLimit(q)
	return f, err
}

// statesOf reads the states that a query selects.
func statesOf(q url.Values) (states []task.State, err error) {
	for _, name := range q["state"] {
		state := task.State(name)
		switch {
		case state == adminapi.PendingTask:
			state = task.None
		case !state.Valid():
			return nil, task.Errorf(task.InvalidParams, "state is %q, but must be pending or a state of AIP", name)
		}
		states = append(states, state)
	}
	return states, nil
}

func listTasks(o *openStore, r *http.Request) (any, error) {
	f, err := taskFilterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, next, err := o.tasks.Engines().Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := adminapi.TaskPage{Tasks: make([]adminapi.Task, 0, len(list)), Next: next}
	for i := range list {
		page.Tasks = append(page.Tasks, o.taskOf(&list[i]))
	}
	return page, nil
}

func (o *openStore) taskOf(t *partner.Overview) adminapi.Task {
	return adminapi.Task{
		TaskName: adminapi.TaskName{Partner: t.Partner, Leader: t.Leader, Task: t.ID}, OfAgent: o.agent(t.Partner),
		Session: t.Session, State: stateOf(t.State), Since: t.Since, First: t.First, Last: t.Last, Bytes: t.Bytes,
		TraceID: t.Trace,
	}
}

func stateOf(s task.State) task.State {
	if s == task.None {
		return adminapi.PendingTask
	}
	return s
}

// eventKinds are the names of the kinds of events.
var eventKinds = map[byte]string{
	task.TaskEvent: adminapi.TaskKind, task.StatusEvent: adminapi.StatusKind,
	task.ChunkEvent: adminapi.ProductKind, task.MessageEvent: adminapi.MessageKind,
}

func eventOf(ev *partner.StoredEvent) adminapi.Event {
	return adminapi.Event{Seq: ev.Seq, Kind: eventKinds[ev.Kind], Bytes: ev.Bytes, Value: ev.Value, Cause: ev.Cause}
}

var errUnnamedTask = task.Errorf(task.InvalidParams,
	"name the task by partner, leader and task, as the list of tasks does")

// eventFilterOf reads a filter of events from a query.
func eventFilterOf(q url.Values) (f partner.EventFilter, err error) {
	f = partner.EventFilter{Partner: q.Get("partner"), Leader: q.Get("leader"), Task: q.Get("task")}
	if f.Partner == "" || f.Leader == "" || f.Task == "" {
		return f, errUnnamedTask
	}
	if f.Limit, err = readLimit(q); err != nil {
		return f, err
	}
	f.After, err = readNumber(q, "after", "the number of an event")
	return f, err
}

func listTaskEvents(o *openStore, r *http.Request) (any, error) {
	f, err := eventFilterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	e, _, err := o.tasks.Of(f.Partner, f.Leader)
	if err != nil {
		return nil, err
	}
	of, list, more, err := e.Events(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := adminapi.EventPage{Task: o.taskOf(&of), TraceLink: o.traceLink(of.Trace),
		Events: make([]adminapi.Event, 0, len(list))}
	for _, ev := range list {
		page.Events = append(page.Events, eventOf(&ev))
		if more {
			page.Next = ev.Seq
		}
	}
	return page, nil
}

// endTask ends the task that the body names.
func endTask(
	end func(e *partner.Engine, ctx context.Context, partner, leader, id, reason string) (partner.Overview, error),
) adminAnswer {
	return func(o *openStore, r *http.Request) (any, error) {
		var t adminapi.TaskEnding
		const form = `{"partner": "…", "leader": "…", "task": "…", "reason": "…"}; the reason may be missing`
		err := readBody(r, &t, form, &t.Partner, &t.Leader, &t.Task)
		if err != nil {
			return nil, err
		}
		t.Partner = o.partnerOf(t.Partner)
		e, _, err := o.tasks.Of(t.Partner, t.Leader)
		if err != nil {
			return nil, err
		}
		ended, err := end(e, r.Context(), t.Partner, t.Leader, t.Task, t.Reason)
		if err != nil {
			return nil, err
		}
		return o.taskOf(&ended), nil
	}
}
