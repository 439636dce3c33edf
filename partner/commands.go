// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Do executes a Leader's command and returns the task as its answer, with its position. A start or continue is answered
// when its turn has settled, or after Terms.Response, whichever is first. The end of ctx ends the waiting only: the
// turn continues. If the state table does not allow a command in the task's state, the command changes nothing and is
// answered with the task as it is. Tasks of other Leaders do not exist. Every error is a *task.Error, a *BoundError, or
// the error of ctx. Result.New counts beside an error, too.
func (p *Partner) Do(ctx context.Context, leader string, c *Request) (Result, error) {
	r, err := p.carryOut(ctx, leader, c, c.Followed)
	if err != nil {
		return Result{}, err
	}
	defer r.tk.release()
	if r.turn == nil && r.again == nil {
		return r.Result, nil
	}
	r.Task = task.Task{}
	if c.Reserve != nil { // while the agent works, the task itself is counted
		if err := c.Reserve(ctx, 0); err != nil {
			if r.turn != nil {
				r.turn.leave()
				r.turn.handOver()
			}
			return Result{New: r.New}, err
		}
	}
	if c.Terms.Response == task.NoWait { // it is for this command only
		r.response = task.NoWait
	} else if c.Waited > 0 {
		r.response = max(r.response-c.Waited, 0)
	}
	if r.Task, r.After, err = p.await(ctx, &r, c); err != nil {
		return Result{New: r.New}, err
	}
	r.Last = r.After
	return r.Result, nil
}

// outcome is the effect of a command. Its owner must release tk.
type outcome struct {
	Result // the Task of a start has the ids only
	tk     *activeTask
	turn   *run   // the turn begun by the command; nil for none
	again  *run   // else the one begun by it at an earlier owner, still under way; nil for none
	before uint64 // number of the last event before the command

	response time.Duration // the caller's time to wait for the turn to settle
}

// carryOut executes a command up to the beginning of the agent's work on it. With stream, the agent is asked to report
// while it works.
func (p *Partner) carryOut(ctx context.Context, leader string, c *Request, stream bool) (outcome, error) {
	if c.BySession && c.Message.TaskID == "" {
		return p.carryOutNext(ctx, leader, c, stream)
	}
	p = p.inForce()
	tk, err := p.engine.lockWithMemory(ctx, logname.New(p.Name, leader, c.Message.TaskID), c.Reserve, c.Message.Size())
	if err != nil {
		return outcome{}, err
	}
	defer tk.mu.Unlock()
	var r outcome
	err = tk.update(ctx, func() (err error) {
		r, err = p.decide(ctx, tk, leader, c, stream)
		return err
	})
	if err != nil {
		tk.release()
		return outcome{}, err
	}
	r.response = tk.meta.Terms.Response
	if r.turn == nil && c.Waited > 0 {
		r.again = tk.begunBy(&c.Message)
	}
	return r, nil
}

// decide is carryOut for the task as it is now. tk.mu is held.
func (p *Partner) decide(
	ctx context.Context, tk *activeTask, leader string, c *Request, stream bool,
) (r outcome, err error) {
	r.tk, r.Log = tk, tk.log
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
			r.New = true
			r.Task.ID, r.Task.SessionID, r.Task.GroupID = m.TaskID, m.SessionID, m.GroupID
		}
		return r, err
	case !tk.exists && c.stopsSession():
		return r, nil
	case !tk.exists:
		return r, NotFound(c.Message.TaskID)
	}
	// A failing store may have ended the run.
	tk.resumeTurn(p)
	// A refused command changes nothing, so a task with a pending start does not become accepted by it.
	if err := tk.refusal(c); err != nil {
		return r, err
	}
	if c.Tentative && tk.meta.Pending != nil && (!changes(command) || tk.isRepeated(&c.Message)) {
		r.Task = tk.pendingTask(c)
		return r, nil
	}
	if c.Bounds.NoContinue && c.Message.Command == task.Continue && !tk.isRepeated(&c.Message) &&
		task.Applies(task.Continue, tk.fold.Status().State) {
		return r, &BoundError{NoContinue: true}
	}
	// The answer shows the task, so its start must not be taken back any more.
	if err := tk.commitPending(ctx); err != nil {
		return r, err
	}
	r.before = tk.logState.last
	if stream && tk.isRepeated(&c.Message) {
		r.before = tk.seqBeforeMessage(ctx, c.Message.ID)
	}
	r.Task, r.turn, err = p.execute(ctx, tk, c, stream)
	r.After = tk.logState.last
	r.Last = r.After
	return r, err
}

// NotFound returns the error of a command for a task unknown to its Leader.
func NotFound(taskID string) error {
	return task.Errorf(task.TaskNotFound, "no task of yours has this id; it may have ended and been dropped").
		WithData("taskId", taskID)
}

// refusal returns the error of a command for an existing task, or nil if the command is executed or ignored. A task
// with a pending start is accepted, as far as commands go. tk.mu is held.
func (tk *activeTask) refusal(c *Request) error {
	state, session := tk.fold.Status().State, tk.fold.Task().SessionID
	if m := tk.meta.Pending; m != nil {
		state, session = task.Accepted, m.SessionID
	}
	switch cmd := c.Message.Command; {
	case cmd == task.Get, c.stopsSession():
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

// execute executes a command, if it is not refused, for an existing task. tk.mu is held.
func (p *Partner) execute(ctx context.Context, tk *activeTask, c *Request, stream bool) (task.Task, *run, error) {
	switch cmd := c.Message.Command; {
	case cmd == task.Get:
		return tk.answer(c), nil, nil
	case tk.isRepeated(&c.Message), !task.Applies(cmd, tk.fold.Status().State),
		c.stopsSession() && tk.fold.Status().State.Settled():
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
			p.forwardComplete(tk, m, c)
		}
		return tk.answer(c), nil, err
	case cmd == task.Cancel:
		err := p.cancel(ctx, tk, c)
		return tk.answer(c), nil, err
	}
	return tk.answer(c), nil, nil
}

var (
	errRepeated = task.Errorf(task.InvalidParams,
		"the task has a message with this id and other content; a new message needs an id of its own")
	errSession = task.Errorf(task.InvalidParams,
		"the message names a context that is not that of its task; leave it out, or start another task")
)

// ignoredError returns the error of a command ignored by the state table, for a Strict dialect.Policy. Its cause is a
// task.StateError.
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

// changes reports whether a command may change an existing task.
func changes(c task.Command) bool { return c != task.Get && c != task.ReStream && c != task.Start }
