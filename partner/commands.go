// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Do carries out a Leader's command and returns the task that answers it. A start or continue is answered
// when the turn rests, or when Terms.Response has passed, whichever is first; the turn goes on regardless,
// and regardless of ctx, which only ends the waiting. A command that the table does not carry out in the
// task's state changes nothing and is answered with the task as it is. A task of another Leader does not
// exist. Every error is a *task.Error, but for that of a ctx that ended.
func (p *Partner) Do(ctx context.Context, leader string, c *Request) (task.Task, error) {
	r, err := p.act(ctx, leader, c, false)
	if err != nil {
		return task.Task{}, err
	}
	defer r.lv.release()
	if r.turn == nil {
		return r.task, nil
	}
	r.task = task.Task{}
	if c.Room != nil { // the task counts itself while the agent is at work
		if err := c.Room(ctx, 0); err != nil {
			return task.Task{}, err
		}
	}
	return p.await(ctx, r.lv, r.turn)
}

// acted is what a command has brought about: the task, and the turn that it began, if it began one. Whoever
// has it must release lv.
type acted struct {
	lv     *live
	task   task.Task
	turn   *run
	before uint64 // the last event before the command
	after  uint64 // the last event that task holds
	// existed says that the task was there before the command.
	existed bool
}

// act carries out a command up to the point where an agent is at work. stream asks the agent for news while
// it works.
func (p *Partner) act(ctx context.Context, leader string, c *Request, stream bool) (acted, error) {
	lv := p.engine.acquire(logName(p.Name, leader, c.Message.TaskID))
	if err := lv.lockWithin(ctx, c.Room, c.Message.Size()); err != nil {
		lv.release()
		return acted{}, err
	}
	defer lv.mu.Unlock()
	r := acted{lv: lv}
	err := lv.load(ctx)
	if err == nil {
		command := c.Message.Command
		if c.StartOrContinue && command == task.Start && lv.exists {
			again := *c
			again.Message.Command = task.Continue
			c = &again
		}
		switch {
		case !lv.exists && command == task.Start:
			if r.turn, err = p.start(ctx, lv, leader, c, stream); err == nil {
				m := lv.note.Pending
				r.task.ID, r.task.SessionID, r.task.GroupID = m.TaskID, m.SessionID, m.GroupID
			}
		case !lv.exists:
			err = NotFound(c.Message.TaskID)
		default:
			// A task at work that nobody here works on was orphaned by a failing store.
			lv.adopt(p)
			// Whoever asks for a task that is starting must be told of it.
			if err = lv.settle(ctx); err == nil {
				r.before, r.existed = lv.head.last, true
				if stream && lv.repeats(&c.Message) {
					r.before = lv.beforeMessage(ctx, c.Message.ID)
				}
				r.task, r.turn, err = p.obey(ctx, lv, c, stream)
				r.after = lv.head.last
			}
		}
	}
	if err != nil {
		lv.release()
		return acted{}, err
	}
	return r, nil
}

// NotFound returns the error that says that a caller has no task of an id.
func NotFound(taskID string) error {
	return task.Errorf(task.TaskNotFound, "no task of yours has this id; it may have ended and been dropped").WithData("taskId", taskID)
}

// admit asks the agent whether another turn may wait for it.
func (p *Partner) admit() error {
	if a, ok := p.Agent.(Admitter); ok {
		return a.Admit()
	}
	return nil
}

// start stores the intent and sets the agent to work. lv.mu is held.
func (p *Partner) start(ctx context.Context, lv *live, leader string, c *Request, stream bool) (*run, error) {
	if err := p.admit(); err != nil {
		return nil, err
	}
	if !p.engine.open.add(lv.log, p.MaxTasks) {
		return nil, task.Errorf(task.LimitExceeded, "you have %d unfinished tasks here; complete or cancel some", p.MaxTasks).
			WithData("limit", "tasks_per_leader").WithData("max", p.MaxTasks)
	}
	undo, err := lv.accept(c)
	if err != nil {
		p.engine.open.done(lv.log)
		return nil, err
	}
	m := c.Message
	now := p.engine.wall()
	if m.SentAt.IsZero() {
		m.SentAt = now.In(beijing).Truncate(time.Millisecond)
	}
	if m.SessionID == "" {
		m.SessionID = derive("session", lv.log)
	}
	watched := false
	if w := p.engine.watcher; w != nil {
		if watched, err = w.Watches(ctx, lv.log); err != nil {
			p.engine.open.done(lv.log)
			undo()
			return nil, StoreError(err, "the store cannot be read")
		}
	}
	lv.note = note{
		Watched: watched,
		Terms:   agreedTerms{c.Terms.Or(p.Terms).AtMost(p.MaxAwaiting), c.AutoComplete},
		Ref:     agent.Ref{Task: derive("task", lv.log), Session: derive("session", p.Name, leader, m.SessionID)},
		Pending: &m,
		At:      now,
		Stream:  stream,
	}
	if err := lv.append(ctx, &replay.Append{Log: lv.log, Metadata: lv.note.encode(), DueAt: replay.Recover}); err != nil {
		p.engine.open.done(lv.log)
		undo()
		return nil, err
	}
	lv.exists, lv.size = true, m.Size()
	lv.lease().Take(lv.size)
	return p.begin(ctx, lv, m, task.None, stream), nil
}

// obey carries out a command on a task that exists. lv.mu is held.
func (p *Partner) obey(ctx context.Context, lv *live, c *Request, stream bool) (task.Task, *run, error) {
	state := lv.fold.Task.Status.State
	switch cmd := c.Message.Command; {
	case cmd == task.Get:
		return lv.histories(c), nil, nil
	case lv.repeats(&c.Message):
		err := lv.acceptUnchanged(ctx, c)
		return lv.snapshot(), nil, err
	case cmd == task.Cancel && c.Finished && state == task.AwaitingCompletion:
		return task.Task{}, nil, task.Errorf(task.TaskNotCancelable, "the task is completed, and cannot be canceled any more")
	case cmd == task.ReStream && c.Strict && (state.Terminal() || c.Finished && state == task.AwaitingCompletion):
		return task.Task{}, nil, task.Errorf(task.UnsupportedOperation, "the task has ended, so nothing follows; get it").
			WithData("taskId", c.Message.TaskID)
	case !task.Applies(cmd, state):
		if c.Strict && cmd != task.ReStream {
			return task.Task{}, nil, ignored(cmd, state)
		}
		err := lv.acceptUnchanged(ctx, c)
		return lv.snapshot(), nil, err
	case cmd == task.Continue:
		turn, err := p.goOn(ctx, lv, c, stream)
		return lv.snapshot(), turn, err
	case cmd == task.Complete:
		m := stamped(c.Message)
		b := lv.batch()
		b.move(task.Completed, nil, &m)
		err := b.write(ctx)
		if err == nil {
			p.passOn(lv, m)
		}
		return lv.snapshot(), nil, err
	case cmd == task.Cancel:
		err := p.cancel(ctx, lv, c)
		return lv.snapshot(), nil, err
	}
	return lv.snapshot(), nil, nil
}

// repeats reports whether a message is a continue that was carried out already: a caller whose answer was lost sends it
// again, and it must not run twice. A message without an id is always a new one. lv.mu is held.
func (lv *live) repeats(m *task.Message) bool {
	return m.Command == task.Continue && m.ID != "" &&
		slices.ContainsFunc(lv.fold.Task.MessageHistory, func(had task.Message) bool { return had.ID == m.ID })
}

// beforeMessage returns the number of the event before the one that a message caused, and that of the last event where
// it is no longer kept. lv.mu is held.
func (lv *live) beforeMessage(ctx context.Context, id string) uint64 {
	_, _, records, err := lv.engine.store.Load(ctx, lv.log)
	if err != nil {
		return lv.head.last
	}
	for _, r := range records {
		if _, _, cause := task.SplitEvent(r.Data); cause == nil {
			continue
		}
		if ev, err := task.DecodeEvent(r.Data); err == nil && ev.Cause.ID == id {
			return r.Seq - 1
		}
	}
	return lv.head.last
}

// ignored is what a caller is told whose dialect has no commands that change nothing.
func ignored(cmd task.Command, state task.State) error {
	switch {
	case cmd == task.Cancel:
		return task.Errorf(task.TaskNotCancelable, "the task is %s, and cannot be canceled any more", state)
	case state.Terminal():
		return task.Errorf(task.UnsupportedOperation, "the task is %s; start another one", state)
	}
	return task.Errorf(task.UnsupportedOperation, "the task is %s and takes no message now; wait until it asks for one", state)
}

// goOn begins another turn of a task that rests. lv.mu is held.
func (p *Partner) goOn(ctx context.Context, lv *live, c *Request, stream bool) (*run, error) {
	whole := lv.fold.Task
	if whole.Status.State == task.AwaitingCompletion {
		whole.Products = nil // they are withdrawn
	}
	if limit := p.MaxBytes; whole.Size()+c.Message.Size() > limit {
		return nil, task.Errorf(task.LimitExceeded, "the task has grown too large to go on; start another").
			WithData("limit", "max_bytes").WithData("max", limit)
	}
	if err := p.admit(); err != nil {
		return nil, err
	}
	undo, err := lv.accept(c)
	if err != nil {
		return nil, err
	}
	m := stamped(c.Message)
	from := lv.fold.Task.Status.State
	lv.note.Stream, lv.note.Open, lv.note.Unsent, lv.note.Taken = stream, false, false, false
	if c.Terms.Response != 0 {
		lv.note.Terms.Response = c.Terms.Response
	}
	b := lv.batch()
	b.move(task.Working, nil, &m)
	if from == task.AwaitingCompletion && len(lv.fold.Task.Products) > 0 {
		b.events[len(b.events)-1].Offer = []string{} // the Leader did not take what it was offered
	}
	if err := b.write(ctx); err != nil {
		undo()
		return nil, err
	}
	return p.begin(ctx, lv, m, from, stream), nil
}

// passOn tells the agent that its task is completed. What it makes of that changes nothing here. lv.mu is held.
func (p *Partner) passOn(lv *live, m task.Message) {
	t := &agent.Turn{Ref: lv.note.Ref, Message: m}
	logger := lv.logger()
	p.engine.spawn(func(ctx context.Context) {
		ctx, done := context.WithTimeout(ctx, cancelTimeout)
		defer done()
		if _, err := guard(lv.logger, func() (any, error) { return nil, p.Agent.Complete(ctx, t) }); err != nil {
			logger.Debug("the agent was not told that its task is completed", "reason", err)
		}
	})
}

// stamped returns a message with the time of its arrival, where it does not say when it was sent.
func stamped(m task.Message) task.Message {
	if m.SentAt.IsZero() {
		m.SentAt = time.Now().In(beijing).Truncate(time.Millisecond)
	}
	return m
}

// histories returns the task as get shows it. lv.mu is held.
func (lv *live) histories(c *Request) task.Task {
	t := lv.fold.Task
	if after := c.MessagesAfter; !after.IsZero() {
		t.MessageHistory = slices.DeleteFunc(slices.Clone(t.MessageHistory), func(m task.Message) bool { return !m.SentAt.After(after) })
	}
	if after := c.StatesAfter; !after.IsZero() {
		t.StatusHistory = slices.DeleteFunc(slices.Clone(t.StatusHistory), func(s task.Status) bool { return !s.ChangedAt.After(after) })
	}
	return t
}

// await waits for a turn to rest, but not longer than the Leader agreed to, and not longer than the process has left.
func (p *Partner) await(ctx context.Context, lv *live, turn *run) (task.Task, error) {
	began := time.Now()
	patience := time.NewTimer(turn.response)
	defer patience.Stop()
	stopping := p.Stopping
	for waiting := true; waiting; {
		select {
		case <-turn.rests:
			waiting = false
		case <-patience.C:
			waiting = false
		case <-stopping:
			stopping = nil
			patience.Reset(min(rand.N(p.Drain+1), turn.response-time.Since(began)))
		case <-ctx.Done():
			return task.Task{}, ctx.Err()
		}
	}
	lv.mu.Lock()
	defer lv.mu.Unlock()
	if decided := lv.decided; lv.held != nil { // the turn has ended, and a cancel is about to write how
		lv.mu.Unlock()
		select {
		case <-decided:
		case <-patience.C:
		case <-ctx.Done():
		}
		lv.mu.Lock()
	}
	if err := lv.load(ctx); err != nil {
		return task.Task{}, err
	}
	if turn.err != nil {
		return task.Task{}, turn.err
	}
	if err := lv.settle(ctx); err != nil {
		return task.Task{}, err
	}
	return lv.snapshot(), nil
}
