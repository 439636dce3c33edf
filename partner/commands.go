// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Do executes a Leader's command and returns the task that answers it. A start or continue is answered when its turn
// has settled, or after Terms.Response, whichever is first. The end of ctx ends the waiting only: the turn continues. A
// command that the state table does not allow in the task's state changes nothing and is answered with the task as it
// is. Tasks of other Leaders do not exist. Every error is a *task.Error, or that of ctx.
func (p *Partner) Do(ctx context.Context, leader string, c *Request) (task.Task, error) {
	r, err := p.carryOut(ctx, leader, c, c.Followed)
	if err != nil {
		return task.Task{}, err
	}
	defer r.tk.release()
	if r.turn == nil {
		return r.task, nil
	}
	r.task = task.Task{}
	if c.Reserve != nil { // while the agent works, the task itself is counted
		if err := c.Reserve(ctx, 0); err != nil {
			r.turn.leave()
			r.turn.handOver()
			return task.Task{}, err
		}
	}
	if c.Terms.Response == task.NoWait { // it is for this command only
		r.turn.response = task.NoWait
	}
	return p.await(ctx, r.tk, r.turn, c)
}

// outcome is the effect of a command. Its owner must release tk.
type outcome struct {
	tk      *activeTask
	task    task.Task // the answer; of a start, the ids only
	turn    *run      // the turn that the command has begun; nil for none
	before  uint64    // number of the last event before the command
	after   uint64    // number of the last event that is a part of task
	existed bool      // the task existed before the command
}

// carryOut executes a command up to the point where the agent works on it. With stream, the agent is asked to report
// while it works.
func (p *Partner) carryOut(ctx context.Context, leader string, c *Request, stream bool) (outcome, error) {
	if c.BySession && c.Message.TaskID == "" {
		return p.carryOutNext(ctx, leader, c, stream)
	}
	p = p.inForce()
	tk := p.engine.acquire(logname.New(p.Name, leader, c.Message.TaskID))
	if err := tk.lockWithMemory(ctx, c.Reserve, c.Message.Size()); err != nil {
		tk.release()
		return outcome{}, err
	}
	defer tk.mu.Unlock()
	var r outcome
	err := tk.update(ctx, func() (err error) {
		r, err = p.decide(ctx, tk, leader, c, stream)
		return err
	})
	if err != nil {
		tk.release()
		return outcome{}, err
	}
	return r, nil
}

// decide is carryOut for the task as it is now. tk.mu is held.
func (p *Partner) decide(
	ctx context.Context, tk *activeTask, leader string, c *Request, stream bool,
) (r outcome, err error) {
	r.tk = tk
	command := c.Message.Command
	if c.Continues() && command == task.Start && tk.exists {
		again := *c
		again.Message.Command = task.Continue
		c = &again
	}
	switch {
	case !tk.exists && command == task.Start:
		if r.turn, err = p.start(ctx, tk, leader, c, stream); err == nil {
			m := tk.meta.Pending
			r.task.ID, r.task.SessionID, r.task.GroupID = m.TaskID, m.SessionID, m.GroupID
		}
		return r, err
	case !tk.exists:
		return r, NotFound(c.Message.TaskID)
	}
	// A failing store may have ended the run.
	tk.resumeTurn(p)
	// A command that is refused changes nothing, so it does not make a task accepted whose start is pending.
	if err := tk.refusal(c); err != nil {
		return r, err
	}
	if c.Tentative && tk.meta.Pending != nil && (!changes(command) || tk.isRepeated(&c.Message)) {
		r.existed, r.task = true, tk.pendingTask(c)
		return r, nil
	}
	// The answer shows the task, so its start must not be taken back any more.
	if err := tk.commitPending(ctx); err != nil {
		return r, err
	}
	r.before, r.existed = tk.logState.last, true
	if stream && tk.isRepeated(&c.Message) {
		r.before = tk.seqBeforeMessage(ctx, c.Message.ID)
	}
	r.task, r.turn, err = p.execute(ctx, tk, c, stream)
	r.after = tk.logState.last
	return r, err
}

// NotFound returns the error of a command for a task that its Leader does not have.
func NotFound(taskID string) error {
	return task.Errorf(task.TaskNotFound, "no task of yours has this id; it may have ended and been dropped").
		WithData("taskId", taskID)
}

// admit asks the agent whether another turn of a task's Leader may wait for it.
func (p *Partner) admit(tk *activeTask) error {
	if a, ok := p.Agent.(Admitter); ok {
		return a.Admit(tk.leader())
	}
	return nil
}

// start stores the start as pending, and begins the turn. tk.mu is held.
func (p *Partner) start(ctx context.Context, tk *activeTask, leader string, c *Request, stream bool) (*run, error) {
	if err := p.engine.draining.refusal(); err != nil {
		return nil, err
	}
	if err := p.admit(tk); err != nil {
		return nil, err
	}
	counted, err := p.engine.open.add(ctx, tk.log, p.MaxTasks)
	if err != nil {
		return nil, err
	}
	if !counted {
		err := task.Errorf(task.LimitExceeded, "you have %d unfinished tasks here; complete or cancel some", p.MaxTasks)
		return nil, err.WithData("limit", "tasks_per_leader").WithData("max", p.MaxTasks)
	}
	undo, err := tk.accept(c)
	if err != nil {
		p.engine.open.done(tk.log)
		return nil, err
	}
	m := c.Message
	now := p.engine.wall()
	if m.SentAt.IsZero() {
		m.SentAt = now.In(beijing).Truncate(time.Millisecond)
	}
	if m.SessionID == "" {
		m.SessionID = derive("session", tk.log)
	}
	watched := false
	if w := p.engine.watcher; w != nil {
		if watched, err = w.Watches(ctx, tk.log); err != nil {
			p.engine.open.done(tk.log)
			undo()
			return nil, StoreError(err, "the store cannot be read")
		}
	}
	terms := c.Terms
	if terms.Response == task.NoWait {
		terms.Response = 0
	}
	ref := agent.Ref{Task: AgentTask(tk.log), Session: derive("session", p.Name, leader, m.SessionID)}
	if c.AgentTask != "" {
		ref.Task = c.AgentTask
	}
	if c.BySession { // the id is used again if all tasks of the session have been dropped
		ref.Task = derive("task", tk.log, m.ID)
	}
	tk.meta = metadata{
		Watched:   watched,
		Terms:     agreedTerms{terms.Or(p.Terms).AtMost(p.MaxAwaiting), c.AutoComplete},
		Ref:       ref,
		Pending:   &m,
		PendingAt: now,
		Stream:    stream,
		Tentative: c.Tentative,
	}
	p.engine.states.start(tk.log)
	if err := tk.appendPending(); err != nil {
		p.engine.open.done(tk.log)
		undo()
		return nil, err
	}
	tk.exists, tk.size = true, m.Size()
	tk.lease().Take(tk.size)
	tk.publish(task.None, now)
	if c.Started != nil {
		c.Started()
	}
	r := p.beginTurn(ctx, tk, m, task.None, stream)
	if c.Refusable {
		r.takeBack = undo
	}
	return r, nil
}

// refusal returns the error of a command for a task that exists, or nil if the command is executed or ignored. A task
// whose start is pending is accepted, as far as commands go. tk.mu is held.
func (tk *activeTask) refusal(c *Request) error {
	state, session := tk.fold.Status().State, tk.fold.Task().SessionID
	if m := tk.meta.Pending; m != nil {
		state, session = task.Accepted, m.SessionID
	}
	switch cmd := c.Message.Command; {
	case cmd == task.Get:
		return nil
	case cmd == task.Continue && c.SameSession && c.Message.SessionID != "" && c.Message.SessionID != session:
		return errSession
	case tk.isRepeated(&c.Message):
		if !tk.isSame(&c.Message) {
			return errRepeated
		}
		return nil
	case cmd == task.Cancel && c.Finished && state == task.AwaitingCompletion:
		return ignoredError(cmd, task.Completed)
	case cmd == task.ReStream && c.Strict && (state.Terminal() || c.Finished && state == task.AwaitingCompletion):
		return task.Errorf(task.UnsupportedOperation, "the task has ended, so nothing follows; get it").
			WithData("taskId", c.Message.TaskID)
	case task.Applies(cmd, state):
		return nil
	case c.BySession:
		return sessionError(c, state)
	case c.Strict && cmd != task.ReStream:
		return ignoredError(cmd, state)
	}
	return nil
}

// execute executes a command that is not refused for a task that exists. tk.mu is held.
func (p *Partner) execute(ctx context.Context, tk *activeTask, c *Request, stream bool) (task.Task, *run, error) {
	switch cmd := c.Message.Command; {
	case cmd == task.Get:
		return tk.answer(c), nil, nil
	case tk.isRepeated(&c.Message), !task.Applies(cmd, tk.fold.Status().State):
		err := tk.acceptUnchanged(ctx, c)
		return tk.answer(c), nil, err
	case cmd == task.Continue:
		turn, err := p.continueTask(ctx, tk, c, stream)
		return tk.answer(c), turn, err
	case cmd == task.Complete:
		m := withSentAt(c.Message)
		b := tk.batch()
		b.move(task.Completed, nil, &m)
		err := b.write(ctx)
		if err == nil {
			p.forwardComplete(tk, m)
		}
		return tk.answer(c), nil, err
	case cmd == task.Cancel:
		err := p.cancel(ctx, tk, c)
		return tk.answer(c), nil, err
	}
	return tk.answer(c), nil, nil
}

// isRepeated reports whether a message is a continue that was executed before: a caller whose answer was lost sends it
// again, and it must not be executed twice. A message without an id is always a new one. tk.mu is held.
func (tk *activeTask) isRepeated(m *task.Message) bool {
	return m.Command == task.Continue && m.ID != "" &&
		slices.ContainsFunc(tk.messages(), func(had task.Message) bool { return had.ID == m.ID })
}

// isSame reports whether a message that is repeated has the content of the one that was executed. tk.mu is held.
func (tk *activeTask) isSame(m *task.Message) bool {
	return slices.ContainsFunc(tk.messages(), func(had task.Message) bool {
		return had.ID == m.ID && slices.EqualFunc(had.DataItems, m.DataItems, task.DataItem.Equal)
	})
}

// messages returns the messages that were executed, or are pending. tk.mu is held.
func (tk *activeTask) messages() []task.Message {
	if m := tk.meta.Pending; m != nil {
		return []task.Message{*m}
	}
	return tk.fold.Task().MessageHistory
}

var (
	errRepeated = task.Errorf(task.InvalidParams,
		"the task has a message with this id and other content; a new message needs an id of its own")
	errSession = task.Errorf(task.InvalidParams,
		"the message names a context that is not that of its task; leave it out, or start another task")
)

// seqBeforeMessage returns the number of the event before the one that a message caused. If that is no longer kept, it
// returns the number of the last event. tk.mu is held.
func (tk *activeTask) seqBeforeMessage(ctx context.Context, id string) uint64 {
	_, _, records, err := tk.engine.store.Load(ctx, tk.log)
	if err != nil {
		return tk.logState.last
	}
	for _, r := range records {
		if _, _, cause := task.SplitEvent(r.Data); cause == nil {
			continue
		}
		if ev, err := task.DecodeEvent(r.Data); err == nil && ev.Cause.ID == id {
			return r.Seq - 1
		}
	}
	return tk.logState.last
}

// ignoredError returns the error of a command that the state table ignores, for a dialect.Policy that is Strict. Its
// cause is a task.StateError.
func ignoredError(cmd task.Command, state task.State) error {
	cause := &task.StateError{State: state}
	switch {
	case cmd == task.Cancel:
		return task.Errorf(task.TaskNotCancelable, "the task is %s, and cannot be canceled any more", state).
			WithCause(cause)
	case state.Terminal():
		return task.Errorf(task.UnsupportedOperation, "the task is %s; start another one", state).WithCause(cause)
	}
	return task.Errorf(task.UnsupportedOperation,
		"the task is %s and takes no message now; wait until it asks for one", state).WithCause(cause)
}

// continueTask begins another turn of a task that is settled. tk.mu is held.
func (p *Partner) continueTask(ctx context.Context, tk *activeTask, c *Request, stream bool) (*run, error) {
	whole := *tk.fold.Task()
	if whole.Status.State == task.AwaitingCompletion {
		whole.Products = nil // they are withdrawn
	}
	if limit := p.MaxBytes; whole.Size()+c.Message.Size() > limit {
		return nil, task.Errorf(task.LimitExceeded, "the task has grown too large to be continued; start another one").
			WithData("limit", "max_bytes").WithData("max", limit).WithCause(errTaskFull)
	}
	if err := p.admit(tk); err != nil {
		return nil, err
	}
	undo, err := tk.accept(c)
	if err != nil {
		return nil, err
	}
	m := withSentAt(c.Message)
	from := tk.fold.Status().State
	tk.meta.Stream, tk.meta.SelfResuming, tk.meta.Unsent, tk.meta.Acknowledged = stream, false, false, false
	if c.Terms.Response > 0 {
		tk.meta.Terms.Response = c.Terms.Response
	}
	b := tk.batch()
	b.move(task.Working, nil, &m)
	if from == task.AwaitingCompletion && len(tk.fold.Task().Products) > 0 {
		b.events[len(b.events)-1].Offer = []string{} // the Leader has not accepted the products
	}
	if err := b.write(ctx); err != nil {
		undo()
		return nil, err
	}
	return p.beginTurn(ctx, tk, m, from, stream), nil
}

// forwardComplete informs the agent that its task is completed, in the background. An error of the agent changes
// nothing. tk.mu is held.
func (p *Partner) forwardComplete(tk *activeTask, m task.Message) {
	t := &agent.Turn{Leader: tk.leader(), Ref: tk.meta.Ref, Message: m}
	logger := tk.logger()
	p.engine.spawn(func(ctx context.Context) {
		ctx, done := context.WithTimeout(ctx, cancelTimeout)
		defer done()
		if _, err := guard(tk.logger, func() (any, error) { return nil, p.Agent.Complete(ctx, t) }); err != nil {
			logger.Debug("the agent was not informed that its task is completed", "reason", err)
		}
	})
}

// withSentAt returns a message with the present time as SentAt, if it has none.
func withSentAt(m task.Message) task.Message {
	if m.SentAt.IsZero() {
		m.SentAt = time.Now().In(beijing).Truncate(time.Millisecond)
	}
	return m
}

// answer returns the task as the answer to a request shows it. tk.mu is held.
func (tk *activeTask) answer(c *Request) task.Task {
	t := *tk.fold.Task()
	t.WithoutTask = tk.meta.WithoutTask
	if c.Message.Command != task.Get && !c.Histories {
		t.MessageHistory, t.StatusHistory = nil, nil
		return t
	}
	if after := c.MessagesAfter; !after.IsZero() {
		old := func(m task.Message) bool { return !m.SentAt.After(after) }
		t.MessageHistory = slices.DeleteFunc(slices.Clone(t.MessageHistory), old)
	}
	if after := c.StatesAfter; !after.IsZero() {
		old := func(s task.Status) bool { return !s.ChangedAt.After(after) }
		t.StatusHistory = slices.DeleteFunc(slices.Clone(t.StatusHistory), old)
	}
	return t
}

// await waits for a turn (see run.awaitSettled), and returns the task.
func (p *Partner) await(ctx context.Context, tk *activeTask, turn *run, c *Request) (task.Task, error) {
	began := time.Now()
	err := turn.awaitSettled(ctx)
	if refusal := turn.leave(); err != nil || refusal != nil {
		return task.Task{}, cmp.Or(err, refusal)
	}
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if decided := tk.decided; tk.held != nil { // the turn has ended, and a cancel is about to write that
		tk.mu.Unlock()
		ctx, done := context.WithDeadline(ctx, began.Add(turn.response))
		select {
		case <-decided:
		case <-ctx.Done():
		}
		done()
		tk.mu.Lock()
	}
	var t task.Task
	err = tk.update(ctx, func() error {
		if turn.err != nil {
			return turn.err
		}
		if c.Tentative && tk.meta.Pending != nil {
			t = tk.pendingTask(c)
			return nil
		}
		err := tk.commitPending(ctx)
		if err == nil {
			t = tk.answer(c)
		}
		return err
	})
	if err != nil {
		return task.Task{}, err
	}
	return t, nil
}

// changes reports whether a command may change a task that exists.
func changes(c task.Command) bool { return c != task.Get && c != task.ReStream && c != task.Start }

// pendingTask returns a task whose start is pending, as it is shown to a dialect.Policy that is Tentative: it has no
// state yet. tk.mu is held.
func (tk *activeTask) pendingTask(c *Request) task.Task {
	m := *tk.meta.Pending
	t := task.Task{ID: m.TaskID, SessionID: m.SessionID, GroupID: m.GroupID}
	t.Status.ChangedAt = tk.meta.PendingAt
	if c.Message.Command == task.Get || c.Histories {
		t.MessageHistory = []task.Message{m}
	}
	return t
}
