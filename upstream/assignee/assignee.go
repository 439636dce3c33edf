// SPDX-License-Identifier: Apache-2.0

// Package assignee carries turns to agents of AUN connecting to the gateway, the assignees of its tasks. The gateway
// sends an agent events, on several connections or on none; the agent answers by calls and events about a task.
package assignee

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// maxEnded is the number of ended tasks of all agents remembered, to give a late call the right error.
const maxEnded = 4096

// Hub holds the open tasks of all connecting agents. It belongs to the process: connections and turns outlive
// configurations. The zero Hub is ready for use. Its methods may be called by any number of goroutines at once.
type Hub struct {
	mu     sync.Mutex
	notify func(agent string, event []byte) // nil for nowhere
	agents map[string]map[string]*exchange  // the open tasks by the AID of their agent, and by their id
	ended  *simplelru.LRU[endedTask, task.State]
}

// endedTask names a task that has no turn any more.
type endedTask struct{ agent, id string }

// NotifyBy sets the function to send an event, a whole frame, to all connections of an agent. It must not wait.
func (h *Hub) NotifyBy(notify func(agent string, event []byte)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notify = notify
}

// Transport returns the transport to the agent with an AID.
func (h *Hub) Transport(aid string) upstream.Transport { return &transport{h, aid} }

// Connected sends a newly connected agent the events of all its open tasks, the oldest first. send sends one, and may
// wait: a task ended meanwhile is not sent.
func (h *Hub) Connected(agent string, send func(event []byte)) {
	for _, x := range h.open(agent) {
		if now, err := h.find(agent, x.id); err == nil && now == x {
			send(updated(x.task()))
		}
	}
}

// open returns the open tasks of an agent, the oldest first.
func (h *Hub) open(agent string) (list []*exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.agents[agent] {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *exchange) int { return a.began.Compare(b.began) })
	return list
}

// Has reports whether an agent has, or recently had, a task with an id.
func (h *Hub) Has(agent, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agents[agent][id] != nil {
		return true
	}
	return h.ended != nil && h.ended.Contains(endedTask{agent, id})
}

// Tasks returns the open tasks of an agent, whole, the oldest first.
func (h *Hub) Tasks(agent string) (tasks [][]byte) {
	for _, x := range h.open(agent) {
		tasks = append(tasks, x.task())
	}
	return tasks
}

// Task returns an open task of an agent, whole. For any other task, the error is the same as from Say.
func (h *Hub) Task(agent, id string) ([]byte, error) {
	x, err := h.find(agent, id)
	if err != nil {
		return nil, err
	}
	return x.task(), nil
}

// find returns the exchange of a task. If there is none, the error names the end of the task, or says that the
// agent has no such task.
func (h *Hub) find(agent, id string) (*exchange, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.agents[agent][id]; x != nil {
		return x, nil
	}
	if h.ended != nil {
		if state, ok := h.ended.Get(endedTask{agent, id}); ok {
			return nil, stateError(state)
		}
	}
	return nil, task.Errorf(task.TaskNotFound, "no open task of yours has this id").WithData("taskId", id)
}

func stateError(state task.State) error {
	return task.Errorf(task.UnsupportedOperation, "the task is %s", codec.StateName(state, false)).
		WithCause(&task.StateError{State: state})
}

// Say hands a call of an agent about an open task, a method and its params, to the turn of the task, and waits until it
// is stored. It returns the agent's new status of the task. Errors have a kind; if the state of the task does not allow
// the call, the cause is a task.StateError.
func (h *Hub) Say(ctx context.Context, agent, id, method string, params gjson.Result) (status string, err error) {
	x, err := h.find(agent, id)
	if err != nil {
		return "", err
	}
	status, stored, err := x.say(method, params, true)
	if err != nil {
		return "", err
	}
	defer x.forget(stored)
	timer := time.NewTimer(storeWait)
	defer timer.Stop()
	select {
	case err = <-stored:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = task.Errorf(task.StoreUnavailable, "it could not be stored within %v; get the task to see whether it was",
			storeWait)
	}
	return status, err
}

// storeWait is the longest wait of a call until it is stored.
const storeWait = 10 * time.Second

// Report is Say for a notification of an agent: it has no answer. It does not wait.
func (h *Hub) Report(agent, id, method string, params gjson.Result) error {
	x, err := h.find(agent, id)
	if err == nil {
		_, _, err = x.say(method, params, false)
	}
	return err
}

// add makes an exchange the current one of its task, and ends the one before it, if there is one.
func (h *Hub) add(x *exchange) {
	h.mu.Lock()
	before := h.agents[x.agent][x.id]
	if h.agents == nil {
		h.agents = make(map[string]map[string]*exchange)
	}
	if h.agents[x.agent] == nil {
		h.agents[x.agent] = make(map[string]*exchange)
	}
	h.agents[x.agent][x.id] = x
	if h.ended != nil {
		h.ended.Remove(endedTask{x.agent, x.id})
	}
	h.mu.Unlock()
	if before != nil {
		before.end()
	}
	h.send(x.agent, updated(x.task()))
}

// remove removes an exchange, and remembers the last state of its task; None if it has not ended.
func (h *Hub) remove(x *exchange, state task.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.agents[x.agent][x.id] != x {
		return
	}
	delete(h.agents[x.agent], x.id)
	if len(h.agents[x.agent]) == 0 {
		delete(h.agents, x.agent)
	}
	if state == task.None {
		return
	}
	if h.ended == nil {
		h.ended, _ = simplelru.NewLRU[endedTask, task.State](maxEnded, nil) // fails for a size below 1 only
	}
	h.ended.Add(endedTask{x.agent, x.id}, state)
}

// send sends an event to all connections of an agent.
func (h *Hub) send(agent string, event []byte) {
	h.mu.Lock()
	notify := h.notify
	h.mu.Unlock()
	if notify != nil {
		notify(agent, event)
	}
}

// transport is the way to one agent.
type transport struct {
	hub   *Hub
	agent string
}

// Routes implements upstream.Transport.
func (t *transport) Routes(translate.Operation) []upstream.Route { return []upstream.Route{t} }

// Close implements upstream.Transport. The transport owns no connection.
func (t *transport) Close() {}

// Confirm implements upstream.Route.
func (t *transport) Confirm() {}

// Open implements upstream.Route. An unconnected agent gets the task when it connects.
func (t *transport) Open(ctx context.Context, r *upstream.Request) (upstream.Exchange, error) {
	body := r.Payload()
	if r.Operation == translate.Cancel {
		t.hub.cancel(t.agent, r.Ref.Task, body)
		return new(canceled), nil
	}
	x := &exchange{hub: t.hub, agent: t.agent, id: r.Ref.Task, ctx: ctx, began: time.Now(), idle: r.IdleTimeout,
		wake: make(chan struct{}, 1)}
	x.status, x.rest = codec.SplitStatus(body)
	t.hub.add(x)
	return x, nil
}

// cancel informs an agent of the cancel of a task. The turn of the task is ended by its context.
func (h *Hub) cancel(agent, id string, body []byte) {
	h.mu.Lock()
	x := h.agents[agent][id]
	h.mu.Unlock()
	h.send(agent, updated(body))
	if x != nil {
		x.mu.Lock()
		x.left = task.Canceled
		x.mu.Unlock()
		h.remove(x, task.Canceled)
	}
}

// updated returns the event of a task for its agent.
func updated(body []byte) []byte {
	return append(append([]byte(`{"jsonrpc":"2.0","method":"event/task.updated","params":`), body...), '}')
}
