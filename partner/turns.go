// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// admit asks the agent whether another turn of a task's Leader may wait for it.
func (p *Partner) admit(tk *activeTask) error {
	if a, ok := p.Agent.(Admitter); ok {
		return a.Admit(tk.leader())
	}
	return nil
}

// keepsTasks reports whether the agent has been seen to keep tasks while it works on them.
func (p *Partner) keepsTasks() bool {
	a, says := p.Agent.(Keeper)
	return says && a.KeepsTasks()
}

// start stores the start as pending, and begins the turn. If this fails, its work is undone. tk.mu is held.
func (p *Partner) start(
	ctx context.Context, tk *activeTask, leader string, c *Request, stream bool,
) (_ *run, err error) {
	if err := p.engine.process.draining.refusal(); err != nil {
		return nil, err
	}
	if err := p.admit(tk); err != nil {
		return nil, err
	}
	if c.Bounds.NoStart {
		return nil, &BoundError{NoStart: true}
	}
	if err := p.countTask(ctx, tk, &c.Bounds); err != nil {
		return nil, err
	}
	var accepted acceptance
	defer func() {
		if err != nil {
			p.engine.open.done(tk.log)
			accepted.undo(ctx, tk)
		}
	}()
	if accepted, err = tk.accept(ctx, c); err != nil {
		return nil, err
	}
	meta, err := p.pending(ctx, tk, leader, c, stream)
	if err != nil {
		return nil, err
	}
	caller := trace.SpanFromContext(ctx)
	meta.Trace = traceID(caller.SpanContext().TraceID())
	tk.meta = meta
	p.engine.states.start(tk.log)
	if err := tk.appendPending(); err != nil {
		return nil, err
	}
	m := *meta.Pending
	tk.exists, tk.size = true, m.Size()
	tk.lease().Take(tk.size)
	tk.publish(task.None, meta.PendingAt)
	accepted.stored()
	r := p.beginTurn(caller, tk, m, task.None, stream, c.Begun)
	r.awaited, r.accepted = c.Refusable, accepted
	return r, nil
}

// countTask counts one more unfinished task of a Leader, unless there are too many.
func (p *Partner) countTask(ctx context.Context, tk *activeTask, b *Bounds) error {
	of := p.MaxTasks
	if b.OfLeader > 0 && (of == 0 || b.OfLeader < of) {
		of = b.OfLeader
	}
	refused, err := p.engine.open.add(ctx, tk.log, of, b.OfAll)
	switch {
	case err != nil || refused == fits:
		return err
	case refused == tooManyOfAll:
		return &BoundError{OfAll: true}
	case of != p.MaxTasks:
		return new(BoundError)
	}
	return task.Errorf(task.LimitExceeded, "you have %d unfinished tasks here; complete or cancel some", p.MaxTasks).
		WithData("limit", "tasks_per_leader").WithData("max", p.MaxTasks)
}

// pending returns the metadata of a task with a pending start.
func (p *Partner) pending(
	ctx context.Context, tk *activeTask, leader string, c *Request, stream bool,
) (n metadata, err error) {
	if w := p.engine.watcher; w != nil {
		if n.Watched, err = w.Watches(ctx, tk.log); err != nil {
			return n, StoreError(err, "the store cannot be read")
		}
	}
	names, err := p.engine.secret.get(ctx, p.engine.store)
	if err != nil {
		return n, err
	}
	m := c.Message
	own := ""
	if m.SessionID != "" && slices.Contains(names.ownSessions, p.Name) {
		if own, err = p.engine.ownSession(ctx, p.Name, leader, m.SessionID); err != nil {
			return n, err
		}
	}
	n.Pending, n.PendingAt = &m, p.engine.wall()
	if m.SentAt.IsZero() {
		m.SentAt = n.PendingAt.In(beijing).Truncate(time.Millisecond)
	}
	if m.SessionID == "" {
		m.SessionID = deriveUUID(names.secret, "session", tk.log)
	}
	terms := c.Terms
	if terms.Response == task.NoWait {
		terms.Response = 0
	}
	n.Terms = agreedTerms{terms.Or(p.Terms).AtMost(p.MaxAwaiting), c.AutoComplete, c.AnswerIsProduct, c.Direct}
	n.Ref, n.OwnSession = agent.Ref{Task: c.AgentTask, Session: own}, own != ""
	if own == "" {
		n.Ref.Session = names.session(p.Name, leader, m.SessionID)
	}
	switch {
	case c.BySession: // the id is used again if all tasks of the session have been dropped
		n.Ref.Task = deriveUUID(names.secret, "task", tk.log, m.ID)
	case n.Ref.Task == "":
		n.Ref.Task = deriveUUID(names.secret, "task", tk.log)
	}
	n.Stream, n.Tentative, n.Proof, n.Subject, n.Kept = stream, c.Tentative, c.Proof, c.Subject, p.keepsTasks()
	return n, nil
}

// continueTask begins another turn of a settled task. tk.mu is held.
func (p *Partner) continueTask(ctx context.Context, tk *activeTask, c *Request, stream bool) (*run, error) {
	whole := *tk.fold.Task()
	whole.MessageHistory = tk.commands()
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
	accepted, err := tk.accept(ctx, c)
	if err != nil {
		return nil, err
	}
	m := withSentAt(c.Message)
	from := tk.fold.Status().State
	tk.meta.Watched = tk.meta.Watched || c.changesTask()
	tk.meta.Stream, tk.meta.SelfResuming, tk.meta.Unsent, tk.meta.Acknowledged = stream, false, false, false
	tk.meta.Proof, tk.meta.Subject, tk.meta.Kept = c.Proof, c.Subject, p.keepsTasks()
	if c.Terms.Response > 0 {
		tk.meta.Terms.Response = c.Terms.Response
	}
	b := tk.batch()
	b.move(task.Working, nil, &m)
	if from == task.AwaitingCompletion && len(tk.fold.Task().Products) > 0 {
		b.events[len(b.events)-1].Offer = []string{} // the Leader has not accepted the products
	}
	if err := b.write(ctx); err != nil {
		accepted.undo(ctx, tk)
		return nil, err
	}
	r := p.beginTurn(trace.SpanFromContext(ctx), tk, m, from, stream, false)
	if r.done.happened { // the engine was closed meanwhile, so nothing is sent
		_ = tk.recordDelivery(ctx, agent.DeliveryQueued) // else the next engine asks the agent first, for some time
	}
	return r, nil
}

// forwardComplete informs the agent of the completion of its task, in the background. An error of the agent changes
// nothing. tk.mu is held.
func (p *Partner) forwardComplete(tk *activeTask, m task.Message, c *Request) {
	t := &agent.Turn{Leader: tk.leader(), Caller: tk.caller(c), Ref: tk.meta.Ref, Message: m, MayAct: tk.engine.mayAct}
	logger, about := tk.logger(), tk.traced(p.engine.base)
	p.engine.spawn(func(ctx context.Context) {
		ctx, done := context.WithTimeout(ctx, cancelTimeout)
		defer done()
		if _, err := guard(about, tk.logger, func() (any, error) { return nil, p.Agent.Complete(ctx, t) }); err != nil {
			logger.DebugContext(about, "the agent was not informed that its task is completed", "reason", err)
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
