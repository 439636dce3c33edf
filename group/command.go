// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/group/broker"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// lane is the commands that wait for those before them for the same task. Commands for different tasks do not wait for
// each other. The broker's prefetch bounds how many commands there are.
type lane = queue[*command]

// command is a command of the group for a task.
type command struct {
	call    translate.Call
	accept  time.Duration // after which a start is accepted; 0 for the Partner's own time
	dialect string
	id      string // of the message if it has one; the id of a reply is derived from it
	size    int    // of the message
	trace   map[string]string
	ack     func()
}

// receive implements tasks.
func (t *groupTasks) receive(d *broker.Delivery) {
	t.read(d, d.Header, d.Ack)
}

// outcome is what becomes of a message of the group.
type outcome uint8

const (
	ignored  outcome = iota // it is not for this agent
	poison                  // it cannot be read
	executed                // it is passed on, and acknowledged when it has been executed
)

// read reads a message and passes on what it asks for.
func (t *groupTasks) read(d *broker.Delivery, header func(string) string, ack func()) {
	o := poison // if reading it meets a bug
	err := t.guard(func() (err error) {
		o, err = t.passOn(d, header, ack)
		return err
	})
	t.mu.Lock()
	t.counts.Received++
	switch o {
	case ignored:
		t.counts.Ignored++
	case poison:
		t.counts.Poison++
	}
	t.mu.Unlock()
	if o == executed {
		return
	}
	if err != nil { // errors of the codec hold no payload
		level := slog.LevelInfo
		if o == poison {
			level = slog.LevelWarn
		}
		t.logger().Log(t.base, level, "a message of a group is dropped", "reason", err, "message", d.ID)
	}
	ack()
}

// passOn has the message executed if it is a command for this agent.
func (t *groupTasks) passOn(d *broker.Delivery, header func(string) string, ack func()) (outcome, error) {
	limits := defaultLimits
	if gw := t.place.gateway(); gw != nil {
		limits = gw.Limits()
	}
	if len(d.Body) > limits.Bytes {
		return poison, task.Errorf(task.LimitExceeded, "it has %d bytes, and at most %d are allowed",
			len(d.Body), limits.Bytes)
	}
	m, err := aip.ReadGroupMessage(d.Body, limits)
	agent := t.place.aic()
	switch {
	case err != nil:
		return poison, err
	case strings.EqualFold(m.SenderID, agent), m.Kind == aip.OtherMessage:
		return ignored, nil
	case m.GroupID != "" && m.GroupID != t.group:
		return ignored, task.Errorf(task.InvalidParams, "it names another group")
	case !strings.EqualFold(m.SenderID, t.leaderID()):
		return ignored, task.Errorf(task.AuthorizationFailed, "its sender is not the Leader of the group")
	case !isSender(d.UserID, m.SenderID):
		return ignored, task.Errorf(task.AuthorizationFailed, "its sender is not the user of the broker that has sent it")
	case !m.For(agent):
		return ignored, nil
	case m.Kind == aip.MemberCommand:
		c, err := m.Management()
		if err != nil {
			return poison, err
		}
		t.place.manage(&c, m.Dialect, d)
		return executed, nil
	}
	call, err := m.Command(t.group)
	if err != nil {
		return poison, err
	}
	call.Message.SenderID = t.leaderID()
	c := &command{call: call, accept: call.Terms.Response, dialect: m.Dialect, size: len(d.Body), ack: ack}
	c.call.Terms.Response = task.NoWait // the lane does not wait for the agent
	c.id = cmp.Or(m.ID, d.ID, rand.Text())
	c.trace = traceHeaders(propagation.TraceContext{}.Extract(context.Background(), carrier(header)))
	t.execute(c)
	return executed, nil
}

// defaultLimits hold while the Partner is in no configuration.
var defaultLimits = jsonrpc.Limits{Bytes: 1 << 20, Depth: 32}

// leaderID is the AIC of the Leader, without the mark of one that has proven nothing.
func (t *groupTasks) leaderID() string { return strings.TrimPrefix(t.leader, quota.Unverified) }

// peer is the Leader as the peer of its commands. A Leader that has proven nothing when it invited the agent proves
// nothing by its messages.
func (t *groupTasks) peer() identity.Peer {
	if strings.HasPrefix(t.leader, quota.Unverified) {
		return identity.Peer{}
	}
	return identity.Peer{Proof: identity.ByBroker, Kind: identity.AICKind, ID: t.leader}
}

// isSender reports whether the user that a broker names may have sent a message. A user that is no AIC says nothing.
func isSender(userID, sender string) bool {
	if userID == "" || strings.EqualFold(userID, sender) {
		return true
	}
	_, err := identity.ParseAIC(userID)
	return err != nil
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
	for {
		reopened := t.store.Reopened()
		err := t.guard(func() error { return t.try(c) })
		switch {
		case err == nil:
			return true
		case errors.Is(err, errPanic): // so would the next attempt
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

// errNotExecuted says that a command was not executed, and is to be delivered again.
var errNotExecuted = task.Errorf(task.Internal, "the command was not executed")

// try executes a command once. Unless it returns an error, it acknowledges the command, or has it acknowledged when its
// reply is confirmed.
func (t *groupTasks) try(c *command) error {
	gw := t.place.gateway()
	if gw == nil || t.base.Err() != nil {
		return errNotExecuted // the link is closed by then
	}
	m := &c.call.Message
	log := logname.New(t.partner, t.leader, m.TaskID)
	followed := t.trace(m.TaskID, c.trace)
	if !followed && m.Command != task.Start && m.Command != task.Get {
		t.dropped(m, "there is no such task of the group that has not ended")
		c.ack()
		return nil
	}

	r := &reply{id: messageID(log, string(m.Command)+logname.Separator+c.id), trace: c.trace, acks: []func(){c.ack}}
	form := t.form(c.dialect)
	server := groupServer{aip.CommandServer(c.call, form, r.id), t.group}
	a, err := t.dispatch(gw, c, server)
	switch {
	case t.base.Err() != nil:
		return errNotExecuted
	case err == nil && m.Command != task.Get:
		c.ack()
		if !followed && !t.trace(m.TaskID, nil) {
			t.dropped(m, "a task of this id has ended, or is not of the group")
		}
		return nil
	case err == nil && t.get(m.TaskID, r.of(server)):
		return nil
	case err == nil && len(a) == 0:
		err = task.Errorf(task.InvalidParams, "the task is not one of the group")
	case err == nil:
		t.answer(r, a)
		return nil
	case task.KindOf(err) == task.StoreUnavailable:
		return err
	case task.KindOf(err) == task.LimitExceeded && m.Command == task.Start && !t.exists(log):
		t.answer(r, form.AppendRejected(nil, r.id, m, time.Now(), err))
		return nil
	}
	t.dropped(m, err)
	c.ack()
	return nil
}

// exists reports whether there may be a task: a start that is delivered again must not be published as rejected.
func (t *groupTasks) exists(log string) bool {
	_, err := t.store.Head(t.base, log)
	return !errors.Is(err, replay.ErrNotFound)
}

// dropped logs that a command is not executed: the exchange has no form for errors.
func (t *groupTasks) dropped(m *task.Message, reason any) {
	t.logger().Info("a command of a group is dropped", "task", m.TaskID, "command", string(m.Command), "reason", reason)
}

// acceptTime is the key of command.accept in the context of a command, in which follow finds it.
type acceptTime struct{}

// dispatch gives a command to the gateway, and returns a copy of the reply.
func (t *groupTasks) dispatch(gw *gateway.Gateway, c *command, server translate.Server) (_ []byte, err error) {
	ctx, span := t.startCommand(c)
	defer func() { endCommand(span, err) }()
	ctx = context.WithValue(ctx, acceptTime{}, c.accept)
	var q gateway.Request
	defer q.Release()
	q.UseParams(server, "")
	if err := gw.Hold(ctx, t.peer(), &q, c.size); err != nil {
		return nil, err
	}
	a := gw.Dispatch(ctx, t.peer(), &q)
	return append([]byte(nil), a.Reply...), a.Err
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

// answer has a message published as a reply.
func (t *groupTasks) answer(r *reply, body []byte) {
	r.append = func([]byte, *task.Task) []byte { return body }
	t.reply(r)
}

// of makes the reply that which a server writes.
func (r *reply) of(s translate.Server) *reply {
	r.append = func(dst []byte, t *task.Task) []byte { return s.AppendTask(dst, jsonrpc.ID(""), nil, t) }
	return r
}

// groupServer is the server of a command. It shows no task of another group, and none without a group.
type groupServer struct {
	translate.Server
	group string
}

// AppendTask implements translate.Server.
func (s groupServer) AppendTask(dst []byte, id jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	if t.GroupID != s.group {
		return dst
	}
	return s.Server.AppendTask(dst, id, c, t)
}

// cancel implements tasks. A task whose agent refuses is left to itself.
func (t *groupTasks) cancel(ctx context.Context) error {
	select {
	case <-t.recovered:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := t.awaitCommands(ctx); err != nil {
		return err
	}
	for {
		reopened := t.store.Reopened()
		if t.cancelAll(ctx) {
			return nil
		}
		select {
		case <-reopened:
		case <-time.After(retryFirst):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitCommands has no task started from now on, and waits for the commands in work.
func (t *groupTasks) awaitCommands(ctx context.Context) error {
	defer context.AfterFunc(ctx, t.wakeAll)()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
	for len(t.lanes) > 0 || t.starting() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if t.closed {
			return errNotExecuted
		}
		t.changed.Wait()
	}
	return nil
}

// starting reports whether a task is about to be started. mu is held.
func (t *groupTasks) starting() bool {
	for _, f := range t.followers {
		if !f.begun {
			return true
		}
	}
	return false
}

// cancelParallel is how many tasks are canceled at a time.
const cancelParallel = 16

// cancelAll cancels the tasks that run. It reports false if that has to be tried again.
func (t *groupTasks) cancelAll(ctx context.Context) bool {
	var logs []string
	t.mu.Lock()
	for _, f := range t.followers {
		if !f.finished {
			logs = append(logs, f.log)
		}
	}
	t.mu.Unlock()
	gw := t.place.gateway()
	if gw == nil {
		return len(logs) == 0
	}
	var work sync.WaitGroup
	var again atomic.Bool
	slots := make(chan struct{}, cancelParallel)
	for _, log := range logs {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			switch err := gw.Cancel(ctx, log, "canceled: the agent leaves the group"); {
			case err == nil, task.KindOf(err) == task.TaskNotFound:
			case task.KindOf(err) == task.StoreUnavailable, ctx.Err() != nil:
				again.Store(true)
			default:
				_, _, id := logname.Split(log)
				t.logger().Warn("a task could not be canceled when its group ended", "task", id, "error", err)
			}
		})
	}
	work.Wait()
	return !again.Load()
}

// drop implements tasks.
func (t *groupTasks) drop(ctx context.Context) error {
	t.mu.Lock()
	t.ending = true
	t.link = nil
	t.epoch++
	t.changed.Broadcast()
	for t.running {
		t.changed.Wait()
	}
	t.replies, t.sent = nil, nil
	for _, f := range t.followers {
		t.remove(f)
		t.changedCursor(f)
	}
	t.mu.Unlock()
	t.save(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.dirty) > 0 {
		return task.Errorf(task.StoreUnavailable, "the tasks of the group cannot be dropped now")
	}
	return nil
}
