// SPDX-License-Identifier: Apache-2.0

package group

import (
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// lane is the queue of commands for the same task. Commands for different tasks do not wait for each other. The
// broker's prefetch bounds the number of commands.
type lane = queue[*command]

// command is a command of the group for a task.
type command struct {
	call    gateway.Call
	id      string // of the message if it has one; the id of a reply is derived from it
	size    int    // of the message
	trace   map[string]string
	ack     func()
	summary gateway.Summary // the log's account of it
}

// peer is the Leader as the peer of its commands. A Leader without a proof in its invitation proves nothing by its
// messages.
func (t *groupTasks) peer() identity.Peer {
	if strings.HasPrefix(t.leader, limit.Unverified) {
		return identity.Peer{}
	}
	return identity.Peer{Proof: identity.ByBroker, Kind: identity.AICKind, ID: t.leader}
}

// execute has a command executed after those for the same task.
func (t *groupTasks) execute(c *command) {
	id := c.call.Message.TaskID
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lanes[id]
	if l != nil {
		l.push(c)
		return
	}
	l = new(lane)
	l.push(c)
	t.lanes[id] = l
	t.doLocked(func() { t.runLane(id, l) })
}

// runLane executes the commands of a lane until there are none.
func (t *groupTasks) runLane(id string, l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l.len() > 0 && !t.closed {
		c := l.pop()
		t.mu.Unlock()
		done := t.carryOut(c)
		t.mu.Lock()
		if done {
			t.counts.Executed++
		}
	}
	delete(t.lanes, id)
	t.changed.Broadcast()
}

// carryOut executes a command and acknowledges it. While the store is unavailable it waits. It reports false if the
// command is not executed: it stays at the broker.
func (t *groupTasks) carryOut(c *command) (done bool) {
	began := time.Now()
	defer func() {
		if done {
			t.log(c, time.Since(began))
		}
	}()
	for {
		reopened := t.store.Reopened()
		err := t.guard(withTrace(t.base, c.trace), func() error { return t.try(c) })
		switch {
		case err == nil:
			return true
		case errors.Is(err, errPanic): // so would the next attempt
			c.summary.Error = task.Internal.String()
			c.ack()
			return true
		}
		if task.KindOf(err) != task.StoreUnavailable {
			return false
		}
		select {
		case <-reopened:
		case <-time.After(retryMax):
		case <-t.base.Done():
			return false
		}
	}
}

// errNotExecuted is the error of a command not executed, to be delivered again.
var errNotExecuted = task.Errorf(task.Internal, "the command was not executed")

// try executes a command once. Unless it returns an error, it acknowledges the command, or has it acknowledged when its
// reply is confirmed.
func (t *groupTasks) try(c *command) error {
	gw := t.member.gateway()
	if gw == nil || t.base.Err() != nil {
		return errNotExecuted // the link is closed by then
	}
	m := &c.call.Message
	c.summary = gateway.Summary{Dialect: c.call.Dialect, Command: string(m.Command), Leader: t.leader, User: t.peer().ID,
		Task: m.TaskID, Trace: trace.SpanContextFromContext(withTrace(t.base, c.trace)).TraceID()}
	log := logname.New(t.partner, t.leader, m.TaskID)
	followed := t.trace(m.TaskID, c.trace)
	if !followed && m.Command != task.Start && m.Command != task.Get {
		t.dropped(c, errNoTask, "there is no such task of the group that has not ended")
		c.ack()
		return nil
	}

	r := &reply{id: messageID(log, string(m.Command)+logname.Separator+c.id), trace: c.trace, acks: []func(){c.ack}}
	form := t.form(c.call.Dialect)
	r.append = func(dst []byte, t *task.Task) []byte { return form.AppendAnswer(dst, r.id, t) }
	body, err := t.call(gw, c, r)
	switch {
	case t.base.Err() != nil:
		return errNotExecuted
	case err == nil && m.Command != task.Get:
		c.ack()
		if !followed && !t.trace(m.TaskID, nil) {
			t.dropped(c, errNoTask, "a task of this id has ended, or is not of the group")
		}
		return nil
	case err == nil && t.get(m.TaskID, r):
		return nil
	case err == nil && body == nil:
		err = task.Errorf(task.InvalidParams, "the task is not one of the group")
	case err == nil:
		t.answer(r, body)
		return nil
	case task.KindOf(err) == task.StoreUnavailable:
		return err
	case isRefusal(err) && m.Command == task.Start && !t.exists(log):
		t.answer(r, form.AppendRejected(nil, r.id, m, time.Now(), err))
		return nil
	}
	t.dropped(c, err, err)
	c.ack()
	return nil
}

// isRefusal reports whether a call is refused for its caller, or because of a limit.
func isRefusal(err error) bool {
	kind := task.KindOf(err)
	return kind == task.LimitExceeded || kind == task.AuthorizationFailed
}

// exists reports whether there may be a task: a start delivered again must not be published as rejected.
func (t *groupTasks) exists(log string) bool {
	_, err := t.store.Head(t.base, log)
	return !errors.Is(err, replay.ErrNotFound)
}

// errNoTask is the reason to drop a command for a task outside the group, or for an ended one.
var errNoTask = task.Errorf(task.TaskNotFound, "there is no such task")

// dropped logs a command not executed: the exchange has no form for errors.
func (t *groupTasks) dropped(c *command, err error, reason any) {
	m := &c.call.Message
	c.summary.Error = task.KindOf(err).String()
	t.logger().InfoContext(withTrace(t.base, c.trace), "a command of a group is dropped", "task", m.TaskID,
		"command", string(m.Command), "reason", reason)
}

// log logs an executed or dropped command.
func (t *groupTasks) log(c *command, took time.Duration) {
	log, level := t.member.access()
	log.Log(t.base, level, "a command of a group was handled", "user_id", c.summary.User, "aip", c.summary,
		"partner", t.partner, "group", t.group, "message", c.id, "duration", took)
}

// call gives a command to the gateway, and returns the reply to a get; nil for a task of no group, or of another one.
func (t *groupTasks) call(gw *gateway.Gateway, c *command, r *reply) (body []byte, err error) {
	ctx, span := t.startCommand(c)
	defer func() { endCommand(span, err) }()
	var q gateway.Request
	defer q.Release()
	if err := gw.Hold(ctx, t.peer(), &q, c.size); err != nil {
		return nil, err
	}
	result, err := gw.Do(ctx, t.peer(), &q, &c.call)
	if c.summary.State = result.Task.Status.State; err != nil {
		c.summary.Error = task.KindOf(err).String()
	} else if c.call.Message.Command == task.Get && result.Task.GroupID == t.group {
		body = r.append(nil, &result.Task)
	}
	return body, err
}

// trace notes the trace of a command for a task, and reports whether the task has a follower.
func (t *groupTasks) trace(taskID string, headers map[string]string) bool {
	<-t.recovered
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.followers[taskID]
	if f != nil && headers != nil {
		f.trace = headers
	}
	return f != nil
}
