// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Task is a task. The Partner's lock guards it.
type Task struct {
	ID, Session, Owner string
	Version            *Version
	Status             Object
	Statuses, Messages []Object
	Products           []any
	Events             []*Event
	Params             Object // of its start
	// Asked is set while the work waits for an answer.
	Asked bool

	seen    []string // ids of its messages
	turn    int      // counts the states, so that a timer knows whether it is late
	changed chan struct{}
	notify  []notify
	queue   []*Webhook
	sending bool
}

// State returns the present state.
func (t *Task) State() string {
	s, _ := t.Status["state"].(string)
	return s
}

func final(state string) bool {
	return state == "completed" || state == "canceled" || state == "failed" || state == "rejected"
}

// Event is one of the log.
type Event struct {
	Seq    any
	Object Object
	State  string // for a status; "" for a piece
	Final  bool
}

// stamp writes a time in Beijing's zone.
func (p *Partner) stamp(at time.Time) string {
	return at.In(time.FixedZone("", 8*60*60)).Format("2006-01-02T15:04:05.000000-07:00")
}

// change sets the state. The caller has the lock.
func (p *Partner) change(t *Task, to string, items []any) {
	from := t.State()
	if final(from) && !p.Accepts["life after the end"] {
		return
	}
	status := Object{"state": to, "stateChangedAt": p.stamp(p.later(t))}
	if len(items) > 0 {
		status["dataItems"] = items
	}
	if p.Change != nil {
		next := p.Change(t, from, to, status)
		if next == "" {
			return
		}
		if next != to {
			status["state"], to = next, next
		}
	}
	if from == "awaiting-completion" && to == "working" {
		t.Products = []any{}
	}
	t.turn++
	t.Status = status
	t.Statuses = append(t.Statuses, status)
	if len(t.Statuses) == 1 {
		p.log(t, p.object(t, false), to)
	} else {
		p.log(t, p.message(t, Object{"type": t.Version.Update, "taskId": t.ID, "sessionId": t.Session,
			"status": clone(status)}), to)
	}
	p.fire(t, to)
	p.time(t, to)
}

// later returns the time, behind that of the last status.
func (p *Partner) later(t *Task) time.Time {
	now := p.Now().Truncate(time.Microsecond)
	if last, err := time.Parse(time.RFC3339Nano, text(t.Status, "stateChangedAt")); err == nil && !now.After(last) {
		now = last.Add(time.Microsecond)
	}
	return now
}

func text(o Object, name string) string {
	s, _ := o[name].(string)
	return s
}

// log puts an event into the task's log. The caller has the lock.
func (p *Partner) log(t *Task, object Object, state string) {
	e := &Event{Seq: len(t.Events) + 1, Object: object, State: state, Final: final(state)}
	events := []*Event{e}
	if p.Event != nil {
		events = p.Event(t, e)
	}
	t.Events = append(t.Events, events...)
	close(t.changed)
	t.changed = make(chan struct{})
}

// time starts the timer of a state in which the task waits.
func (p *Partner) time(t *Task, state string) {
	names := map[string]string{"awaiting-input": "awaitingInputTimeout",
		"awaiting-completion": "awaitingCompletionTimeout"}
	after := number(t.Params, names[state])
	if after <= 0 || names[state] == "" {
		return
	}
	turn := t.turn
	p.afterwards(time.Duration(after)*time.Millisecond, func() {
		if t.turn != turn {
			return
		}
		if state == "awaiting-input" {
			p.change(t, "canceled", nil)
		} else {
			p.change(t, "completed", nil)
		}
	})
}

// afterwards calls do with the lock after a time, unless the Partner is closed by then. The caller has the lock.
func (p *Partner) afterwards(d time.Duration, do func()) {
	p.begins(func() {
		if p.pause(d) {
			p.Locked(do)
		}
	})
}

// pause waits, and reports whether the Partner is still open.
func (p *Partner) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

func number(o Object, name string) int64 {
	n, _ := o[name].(json.Number)
	f, _ := n.Float64()
	return int64(f)
}

// find returns the task of a call. The caller has the lock.
func (p *Partner) find(c *Call) (*Task, *Error) {
	t := p.tasks[c.Text("taskId")]
	if t == nil || p.wrong(t.Owner != c.owner(), "owner") {
		return nil, p.failure("TaskNotFoundError", Object{"taskId": c.Text("taskId")})
	}
	c.Task = t
	return t, nil
}

// owner is who calls.
func (c *Call) owner() string {
	if c.Caller != "" {
		return c.Caller
	}
	return c.Text("senderId")
}

// start returns the task of a start, and whether it is new. The caller has the lock.
func (p *Partner) start(c *Call) (*Task, bool, *Error) {
	id := c.Text("taskId")
	if t := p.tasks[id]; t != nil && !p.Accepts["second start"] {
		if t.Owner != c.owner() {
			return nil, false, p.invalid("taskId")
		}
		c.Task = t
		return t, false, nil
	}
	if len(p.tasks) >= maxTasks {
		return nil, false, p.failure("InternalError", Object{"limit": "tasks"})
	}
	params, _ := c.Message["commandParams"].(Object)
	t := &Task{ID: id, Session: c.Text("sessionId"), Owner: c.owner(), Version: c.Version, Products: []any{},
		Params: params, changed: make(chan struct{})}
	if t.Session == "" {
		p.serial++
		t.Session = fmt.Sprintf("session-%d", p.serial)
	}
	p.tasks[id] = t
	c.Task = t
	if id, is := params["notificationConfigId"].(string); is {
		t.notify = append(t.notify, notify{id, states(params)})
	}
	p.keep(t, c)
	p.begin(t, c, true)
	return t, true, nil
}

// keep puts a command that was carried out into the history.
func (p *Partner) keep(t *Task, c *Call) {
	t.seen = append(t.seen, c.Text("id"))
	message, _ := clone(c.Message).(Object)
	t.Messages = append(t.Messages, message)
}

// command carries out a command of rpc.
func (p *Partner) command(c *Call) (any, *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c.Command {
	case "start":
		t, _, failure := p.start(c)
		if failure != nil {
			return nil, failure
		}
		return p.object(t, false), nil
	case "re-stream":
		return nil, p.invalid("command")
	}
	t, failure := p.find(c)
	if failure != nil {
		return nil, failure
	}
	if c.Command == "get" {
		return p.filtered(t, c), nil
	}
	p.obey(t, c)
	return p.object(t, false), nil
}

// obey carries out continue, complete and cancel.
func (p *Partner) obey(t *Task, c *Call) bool {
	next := p.Rules[c.Command][t.State()]
	if next == "" || slices.Contains(t.seen, c.Text("id")) && !p.Accepts["second message"] {
		return false
	}
	p.keep(t, c)
	if c.Command == "continue" && next == "working" {
		p.begin(t, c, false)
		return true
	}
	p.change(t, next, nil)
	return true
}

// filtered returns a Task with those histories that a get asks for.
func (p *Partner) filtered(t *Task, c *Call) Object {
	o := p.object(t, true)
	params, _ := c.Message["commandParams"].(Object)
	for history, by := range map[string][2]string{t.Version.History: {t.Version.Since, "sentAt"},
		"statusHistory": {"lastStateChangedAt", "stateChangedAt"}} {
		since, err := time.Parse(time.RFC3339Nano, text(params, by[0]))
		entries, is := o[history].([]any)
		if err != nil || !is || p.Accepts["histories in whole"] {
			continue
		}
		o[history] = slices.DeleteFunc(entries, func(e any) bool {
			object, _ := e.(Object)
			at, err := time.Parse(time.RFC3339Nano, text(object, by[1]))
			return err == nil && !at.After(since)
		})
	}
	return o
}

// Later has each task go from a state to another one by itself, so much later.
func (p *Partner) Later(state, next string, after time.Duration) {
	p.Change = func(t *Task, _, to string, _ Object) string {
		if to == state {
			p.afterwards(after, func() {
				if t.State() == state {
					p.change(t, next, nil)
				}
			})
		}
		return to
	}
}
