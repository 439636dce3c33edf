// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// taskFilterOf reads a filter of tasks from a query.
func (a *Admin) taskFilterOf(q url.Values) (f partner.TaskFilter, err error) {
	switch sort := q.Get("sort"); sort {
	case "", adminapi.SortNewest:
	case adminapi.SortName:
		f.ByName = true
	default:
		return f, task.Errorf(task.InvalidParams, "sort is %q, but must be newest or name", sort)
	}
	if f.Search = q.Get("search"); f.Search != "" {
		for _, p := range a.Partners() {
			if strings.HasPrefix(p.Title, f.Search) || strings.HasPrefix(p.Name, f.Search) {
				f.SearchPartners = append(f.SearchPartners, p.Name)
			}
		}
	}
	f.Partner, f.Leader, f.Task, f.After = q.Get("partner"), q.Get("leader"), q.Get("task"), q.Get("after")
	f.Session = q.Get("session")
	if f.States, err = statesOf(q); err != nil {
		return f, err
	}
	for name, into := range map[string]*time.Duration{"min_age": &f.MinAge, "max_age": &f.MaxAge} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		if *into, err = parseDuration(text); err != nil || *into <= 0 {
			return f, task.Errorf(task.InvalidParams, "%s is %q, but must be a duration such as 90s, 10m or 2d",
				name, text)
		}
	}
	since, err := readMoment(q, "since")
	if err != nil {
		return f, err
	}
	if !since.IsZero() {
		age := time.Since(since)
		if age <= 0 {
			return f, task.Errorf(task.InvalidParams, "since is %q, but must be a time that is over", q.Get("since"))
		}
		if f.MaxAge == 0 || age < f.MaxAge {
			f.MaxAge = age
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

func listTasks(a *Admin, r *http.Request) (any, error) {
	f, err := a.taskFilterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list, next, err := a.Tasks.Engines().Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := adminapi.TaskPage{Tasks: make([]adminapi.Task, 0, len(list)), Next: next}
	for i := range list {
		t := a.taskOf(&list[i])
		if e, _, err := a.Tasks.Of(t.Partner, t.Leader); err == nil {
			t.Reason = e.Reason(r.Context(), &list[i])
		}
		page.Tasks = append(page.Tasks, t)
	}
	return page, nil
}

// countTasks answers with how many tasks are in each state.
func countTasks(a *Admin, r *http.Request) (any, error) {
	f, err := a.taskFilterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	counts, err := a.Tasks.Engines().Count(r.Context(), f)
	if err != nil {
		return nil, err
	}
	list := adminapi.TaskCountList{Counts: []adminapi.TaskCount{}}
	for _, c := range counts {
		if c.Count > 0 || c.More {
			list.Counts = append(list.Counts, adminapi.TaskCount{State: stateOf(c.State), Count: c.Count, More: c.More})
		}
	}
	return list, nil
}

// allCounts answers with how many tasks of all gateways are in each state.
func allCounts(a *Admin, r *http.Request, q question) (any, error) {
	all, missing, err := askNodes[adminapi.TaskCountList](a, r, q)
	if err != nil {
		return nil, err
	}
	sum := adminapi.TaskCountList{Partial: adminapi.Partial{Missing: missing}, Counts: []adminapi.TaskCount{}}
	for _, state := range append([]task.State{adminapi.PendingTask}, task.States()...) {
		total := adminapi.TaskCount{State: state}
		for _, one := range all {
			for _, c := range one.page.Counts {
				if c.State == state {
					total.Count, total.More = total.Count+c.Count, total.More || c.More
				}
			}
		}
		if total.Count > 0 || total.More {
			sum.Counts = append(sum.Counts, total)
		}
	}
	return sum, nil
}

// allTasks answers with the tasks of all gateways in the order of their last changes.
func allTasks(a *Admin, r *http.Request, q question) (any, error) {
	if r.URL.Query().Get("sort") == adminapi.SortName {
		return tasksByGateway(a, r, q)
	}
	limit, err := pageLimit(r.URL.Query(), defaultPage, maxPage)
	if err != nil {
		return nil, err
	}
	all, missing, err := askNodes[adminapi.TaskPage](a, r, q)
	if err != nil {
		return nil, err
	}
	into := newestOf(all, limit)
	into.Missing = missing
	return into, nil
}

// newestOf makes one page of those of all gateways. Each has what its gateway has behind the cursor, and how far that
// has looked; the page ends where the first one has stopped to look.
func newestOf(all []ofNode[adminapi.TaskPage], limit int) adminapi.TaskPage {
	into := adminapi.TaskPage{Tasks: []adminapi.Task{}}
	for _, one := range all {
		into.Tasks = append(into.Tasks, named(one.page.Tasks, one.name)...)
		if next := one.page.Next; next != "" && (into.Next == "" || partner.CompareCursors(next, into.Next) < 0) {
			into.Next = next
		}
	}
	slices.SortStableFunc(into.Tasks, func(a, b adminapi.Task) int {
		return partner.CompareCursors(cursorOf(&a), cursorOf(&b))
	})
	if into.Next != "" {
		into.Tasks = slices.DeleteFunc(into.Tasks, func(t adminapi.Task) bool {
			return partner.CompareCursors(into.Next, cursorOf(&t)) < 0
		})
	}
	if len(into.Tasks) > limit {
		into.Tasks = into.Tasks[:limit]
		into.Next = cursorOf(&into.Tasks[limit-1])
	}
	return into
}

// cursorOf returns where the page behind a task begins.
func cursorOf(t *adminapi.Task) string {
	return (&partner.Overview{Partner: t.Partner, Leader: t.Leader, ID: t.Task, Since: t.Since}).Cursor()
}

func (a *Admin) taskOf(t *partner.Overview) adminapi.Task {
	return adminapi.Task{
		TaskName: adminapi.TaskName{Partner: t.Partner, Leader: t.Leader, Task: t.ID}, OfAgent: a.agent(t.Partner),
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

// taskNameOf reads which task a query names.
func taskNameOf(q url.Values) (adminapi.TaskName, error) {
	of := adminapi.TaskName{Partner: q.Get("partner"), Leader: q.Get("leader"), Task: q.Get("task")}
	if of.Partner == "" || of.Leader == "" || of.Task == "" {
		return of, task.Errorf(task.InvalidParams, "name the task by partner, leader and task, as the list of tasks does")
	}
	return of, nil
}

// eventFilterOf reads a filter of events from a query.
func eventFilterOf(q url.Values) (f partner.EventFilter, err error) {
	of, err := taskNameOf(q)
	if err != nil {
		return f, err
	}
	f = partner.EventFilter{Partner: of.Partner, Leader: of.Leader, Task: of.Task}
	if f.Limit, err = readLimit(q); err != nil {
		return f, err
	}
	f.After, err = readNumber(q, "after", "the number of an event")
	return f, err
}

func listTaskEvents(a *Admin, r *http.Request) (any, error) {
	f, err := eventFilterOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	e, _, err := a.Tasks.Of(f.Partner, f.Leader)
	if err != nil {
		return nil, err
	}
	of, list, more, err := e.Events(r.Context(), f)
	if err != nil {
		return nil, err
	}
	page := adminapi.EventPage{Task: a.taskOf(&of), TraceLink: a.traceLink(of.Trace),
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
) answer {
	return func(a *Admin, r *http.Request) (any, error) {
		var t adminapi.TaskEnding
		const form = `{"partner": "…", "leader": "…", "task": "…", "reason": "…"}; the reason may be missing`
		err := readBody(r, &t, form, &t.Partner, &t.Leader, &t.Task)
		if err != nil {
			return nil, err
		}
		t.Partner = a.partnerOf(t.Partner)
		e, _, err := a.Tasks.Of(t.Partner, t.Leader)
		if err != nil {
			return nil, err
		}
		ended, err := end(e, r.Context(), t.Partner, t.Leader, t.Task, t.Reason)
		if err != nil {
			return nil, err
		}
		return a.taskOf(&ended), nil
	}
}

// tasksByGateway answers with the tasks of one gateway after the other, which each has in the order of their names.
var tasksByGateway = paged(func(p *adminapi.TaskPage) listFields[adminapi.Task] {
	return listFields[adminapi.Task]{&p.Tasks, &p.Missing, &p.Next}
})
