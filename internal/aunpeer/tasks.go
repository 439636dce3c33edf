// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// tasks are those of a Gateway.
type tasks struct {
	mu   sync.Mutex
	byID map[string]*work
	last int
}

// work is a task of a Gateway, carried out by its agent.
type work struct {
	gateway *Gateway
	ctx     context.Context
	stop    context.CancelFunc
	answer  chan string
	task    Task // guarded by the mutex of tasks
}

var errEnded = errors.New("the task has ended")

// Tasks returns the gateway's tasks, in the order of their creation.
func (g *Gateway) Tasks() (list []Task) {
	g.tasks.mu.Lock()
	defer g.tasks.mu.Unlock()
	for _, w := range g.tasks.byID {
		list = append(list, w.task)
	}
	slices.SortFunc(list, func(a, b Task) int { return cmp.Compare(a.TaskID, b.TaskID) })
	return list
}

// task carries out a method of task.*.
func (s *session) task(aid string, f Frame) (any, *Error) {
	g := s.gateway
	var p struct {
		TaskID  string   `json:"task_id"`
		TaskIDs []string `json:"task_ids"`
		To      string
		Input   *Content
		Status  string
		Reason  string
	}
	if err := json.Unmarshal(f.Params, &p); err != nil {
		return nil, &Error{Code: -32602, Message: err.Error()}
	}
	switch f.Method {
	case "task.create":
		if p.To != g.Agent || p.Input == nil {
			return nil, &Error{Code: -32010, Message: "agent offline"}
		}
		return g.create(aid, *p.Input), nil
	case "task.list":
		var list []Task
		for _, t := range g.Tasks() {
			if t.Owner == aid && (p.Status == "" || t.Status == p.Status) {
				list = append(list, t)
			}
		}
		return map[string]any{"tasks": list, "has_more": false}, nil
	case "task.subscribe", "task.unsubscribe":
		var done []string
		for _, id := range p.TaskIDs {
			if w, _ := g.find(aid, id); w != nil {
				s.mu.Lock()
				s.subscriptions[id] = f.Method == "task.subscribe"
				s.mu.Unlock()
				done = append(done, id)
			}
		}
		return map[string]any{"subscribed": done}, nil
	}
	w, failed := g.find(aid, p.TaskID)
	if failed != nil {
		return nil, failed
	}
	switch f.Method {
	case "task.get":
		return w.snapshot(), nil
	case "task.children":
		return map[string]any{"children": w.snapshot().Children}, nil
	case "task.send_input":
		return w.input(p.Input)
	case "task.cancel":
		if err := w.change("canceled", p.Reason, nil, nil); err != nil {
			return nil, stateInvalid(w.snapshot().Status)
		}
		w.stop()
		return map[string]any{"task_id": p.TaskID, "status": "canceled"}, nil
	case "task.accept", "task.reject", "task.complete", "task.fail":
		return nil, &Error{Code: -32175, Message: "task access denied"}
	}
	return nil, &Error{Code: -32601, Message: "method not found"}
}

func stateInvalid(status string) *Error {
	codes := map[string]int{"canceled": -32173, "rejected": -32177, "failed": -32186}
	return &Error{Code: cmp.Or(codes[status], -32171), Message: "the task is " + status}
}

// find returns a task of an owner.
func (g *Gateway) find(aid, id string) (*work, *Error) {
	g.tasks.mu.Lock()
	defer g.tasks.mu.Unlock()
	if w := g.tasks.byID[id]; w != nil && w.task.Owner == aid {
		return w, nil
	}
	return nil, &Error{Code: -32170, Message: "task not found"}
}

// create creates a task, and has the agent carry it out.
func (g *Gateway) create(owner string, input Content) any {
	w := &work{gateway: g, answer: make(chan string, 1)}
	w.ctx, w.stop = context.WithCancel(g.closed)
	g.tasks.mu.Lock()
	g.tasks.last++
	w.task = Task{
		TaskID: fmt.Sprintf("task_%06d", g.tasks.last), Status: "submitted", Owner: owner, Assignee: g.Agent,
		Visibility: "private", Input: &input, CreatedAt: now(), UpdatedAt: now(),
	}
	g.tasks.byID[w.task.TaskID] = w
	created := w.task
	g.tasks.mu.Unlock()
	g.running.Add(1)
	go func() {
		defer g.running.Done()
		_ = Run(w.ctx, input.String(), w) // the task has ended otherwise
	}()
	return map[string]any{
		"task_id": created.TaskID, "status": created.Status, "owner": owner, "assignee": g.Agent,
		"created_at": created.CreatedAt,
	}
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

func (w *work) snapshot() Task {
	w.gateway.tasks.mu.Lock()
	defer w.gateway.tasks.mu.Unlock()
	t := w.task
	t.Artifacts, t.Messages = slices.Clone(t.Artifacts), slices.Clone(t.Messages)
	return t
}

func (w *work) input(input *Content) (any, *Error) {
	tasks := &w.gateway.tasks
	tasks.mu.Lock()
	status := w.task.Status
	waits := status == "input_required" && input != nil
	if waits {
		w.task.Status, w.task.UpdatedAt = "working", now()
		w.task.Messages = append(w.task.Messages, Message{w.task.Owner, *input})
	}
	tasks.mu.Unlock()
	if !waits {
		return nil, stateInvalid(status)
	}
	w.publish("event/task.updated", TaskEvent{Task: Task{Status: "working", UpdatedAt: now()}})
	w.answer <- input.String()
	return map[string]any{"task_id": w.task.TaskID, "status": "working"}, nil
}

// change moves the task to another status, and publishes the change.
func (w *work) change(status, reason string, message *Content, artifacts []Artifact) error {
	tasks := &w.gateway.tasks
	tasks.mu.Lock()
	if Ended(w.task.Status) {
		tasks.mu.Unlock()
		return errEnded
	}
	w.task.Status, w.task.UpdatedAt = status, now()
	if message != nil {
		w.task.Messages = append(w.task.Messages, Message{w.task.Assignee, *message})
	}
	if artifacts != nil {
		w.task.Artifacts = artifacts
	}
	w.task.Message, w.task.Reason = message, reason
	ev := TaskEvent{Task: Task{
		Status: status, UpdatedAt: w.task.UpdatedAt, Artifacts: artifacts, Message: message, Reason: reason,
	}}
	tasks.mu.Unlock()
	method := "event/task.updated"
	if status == "completed" || status == "failed" {
		method = "event/task." + status
	}
	w.publish(method, ev)
	return nil
}

// publish sends an event to all connections subscribed to the task.
func (w *work) publish(method string, ev TaskEvent) {
	ev.TaskID = w.task.TaskID
	for _, s := range w.gateway.open() {
		s.mu.Lock()
		wants := s.subscriptions[ev.TaskID]
		s.mu.Unlock()
		if wants {
			_ = s.Notify(w.gateway.closed, method, ev) // its connection has ended
		}
	}
}

// Accept implements Work.
func (w *work) Accept(context.Context) error { return w.change("working", "", nil, nil) }

// Reject implements Work.
func (w *work) Reject(_ context.Context, reason string) error {
	return w.change("rejected", reason, nil, nil)
}

// Fail implements Work.
func (w *work) Fail(_ context.Context, reason string) error {
	return w.change("failed", reason, nil, nil)
}

// Complete implements Work.
func (w *work) Complete(_ context.Context, artifacts ...Artifact) error {
	return w.change("completed", "", nil, artifacts)
}

// Ask implements Work.
func (w *work) Ask(ctx context.Context, question string) (string, error) {
	text := Text(question)
	if err := w.change("input_required", "", &text, nil); err != nil {
		return "", err
	}
	select {
	case answer := <-w.answer:
		return answer, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Delegate implements Delegator. The part is done at once.
func (w *work) Delegate(_ context.Context, to, text string) error {
	tasks := &w.gateway.tasks
	input := Text(text)
	tasks.mu.Lock()
	tasks.last++
	child := Task{
		TaskID: fmt.Sprintf("task_%06d", tasks.last), Status: "completed", Owner: w.task.Assignee, Assignee: to,
		ParentTaskID: w.task.TaskID, Input: &input, CreatedAt: now(), UpdatedAt: now(),
	}
	w.task.Children = append(slices.Clone(w.task.Children), child)
	tasks.mu.Unlock()
	w.publish("event/task.delegated", TaskEvent{Child: &child})
	return nil
}

// Piece implements Work.
func (w *work) Piece(_ context.Context, a Artifact, last bool) error {
	tasks := &w.gateway.tasks
	tasks.mu.Lock()
	ended := Ended(w.task.Status)
	begun := false
	if !ended {
		i := slices.IndexFunc(w.task.Artifacts, func(b Artifact) bool { return b.ID == a.ID })
		if begun = i >= 0; begun {
			w.task.Artifacts = slices.Clone(w.task.Artifacts)
			w.task.Artifacts[i].Content = w.task.Artifacts[i].Content.(string) + a.Content.(string)
		} else {
			w.task.Artifacts = append(w.task.Artifacts, a)
		}
		w.task.UpdatedAt = now()
	}
	ev := TaskEvent{Artifact: &a, Append: begun, LastChunk: last}
	ev.UpdatedAt = w.task.UpdatedAt
	tasks.mu.Unlock()
	if ended {
		return errEnded
	}
	w.publish("event/task.artifact", ev)
	return nil
}
