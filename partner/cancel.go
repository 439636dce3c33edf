// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

const (
	// cancelTimeout is the time for an agent to report its stop, or another end of the task.
	cancelTimeout = 10 * time.Second
	// refusedTimeout is the time for which a cancel refused by the agent waits before it asks for the end of the task.
	refusedTimeout = time.Second
)

// cancels are the cancel commands of a task waiting for the agent's answer. The task's mutex guards them.
type cancels struct {
	waiting int           // their number
	decided chan struct{} // closed when the last of them has its answer; nil while there are none
	// held is the end reported by the run while cancels wait: Canceled or Failed. It is written after the agent has
	// answered, so that the history names the command causing it.
	held *agent.Report
}

// holdEnd keeps the end reported by the run until the cancels have their answer. It reports whether there are any.
func (c *cancels) holdEnd(end agent.Report) bool {
	if c.waiting > 0 {
		c.held = &end
		c.held.Pieces = nil // they are not valid for as long, and a task with such an end does without them
	}
	return c.waiting > 0
}

// isCanceling reports whether a cancel of the task waits for the agent's answer.
func (tk *activeTask) isCanceling() bool {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	return tk.waiting > 0
}

// begin adds a waiting cancel.
func (c *cancels) begin() {
	if c.waiting++; c.waiting == 1 {
		c.decided = make(chan struct{})
	}
}

// end removes a waiting cancel. The last one gets the held report, and must write it.
func (c *cancels) end() *agent.Report {
	if c.waiting--; c.waiting > 0 {
		return nil
	}
	held := c.held
	close(c.decided)
	c.decided, c.held = nil, nil
	return held
}

// cancel stops the agent, if it works on the task, and ends the task. tk.mu is held at the call and at the return, but
// not while the agent is asked. A Leader can cancel a task even if its agent cannot be reached. If the agent refuses,
// so does the gateway, unless the task has ended meanwhile.
func (p *Partner) cancel(ctx context.Context, tk *activeTask, c *Request) error {
	ctx = context.WithoutCancel(ctx) // the agent acts on the request even if the caller leaves
	m := withSentAt(c.Message)
	var answered cancelAnswer
	if tk.fold.Status().State != task.AwaitingCompletion {
		answered = tk.askToCancel(ctx, p, m, c)
	}
	return tk.update(ctx, func() error { return tk.recordCancel(ctx, c, &m, &answered) })
}

// cancelAnswer is the outcome of a request to the agent to cancel a task. It is the zero value if it was not asked.
type cancelAnswer struct {
	asked   bool
	report  agent.Report
	refusal error
	held    *agent.Report // see cancels.held
}

// refused reports whether the agent refuses to cancel.
func (a *cancelAnswer) refused() bool { return task.KindOf(a.refusal) == task.TaskNotCancelable }

// askToCancel asks the agent to stop. tk.mu is held at the call and at the return, but not while the agent is asked.
func (tk *activeTask) askToCancel(ctx context.Context, p *Partner, m task.Message, c *Request) cancelAnswer {
	a := cancelAnswer{asked: true}
	turn := tk.cancelTurn(m, c)
	current, asked := tk.run, p.Agent
	if current != nil {
		asked = current.partner.Agent // it began the turn, perhaps by a configuration of before
	}
	tk.cancels.begin()
	tk.mu.Unlock()
	a.report, a.refusal = cancelAgent(ctx, tk, asked, turn)
	if a.refused() {
		tk.awaitEndReport(ctx)
	}
	tk.mu.Lock()
	decided := tk.decided
	a.held = tk.cancels.end()
	if a.refused() && tk.waiting > 0 {
		// The agent may have refused because it already executes another cancel.
		tk.mu.Unlock()
		wait(decided, cancelTimeout)
		tk.mu.Lock()
	}
	return a
}

// recordCancel ends the task by a cancel, with the agent's answer to it. tk.mu is held.
func (tk *activeTask) recordCancel(ctx context.Context, c *Request, m *task.Message, a *cancelAnswer) error {
	var items []task.DataItem
	if a.asked {
		switch state := tk.fold.Status().State; {
		case !task.Applies(task.Cancel, state):
			return nil // it has ended meanwhile, as the answer shows
		case a.held != nil && a.held.State == task.Canceled:
			items = a.held.Items
		case a.held != nil && a.refused():
			return tk.fail(ctx, a.held.Items[0].Text)
		case a.refused() && !state.Settled():
			return a.refusal
		case a.refusal != nil:
			items = []task.DataItem{task.Text("canceled here, but the agent could not be informed: " + detail(a.refusal))}
		case a.report.State == task.Canceled:
			items = a.report.Items
		}
	}
	cause := m
	if c.Operator {
		items, cause = slices.Concat(m.DataItems, items), nil
	}
	b := tk.batch()
	b.move(task.Canceled, items, cause)
	if err := b.write(ctx); err != nil {
		return err
	}
	if c.Operator {
		tk.logger().InfoContext(tk.traced(ctx), "the operator has canceled a task")
	}
	if tk.run != nil {
		tk.run.stop()
	}
	return nil
}

// cancelTurn returns the turn by which an agent is asked to stop, with the command m and the caller of c, if c is not
// nil. tk.mu is held.
func (tk *activeTask) cancelTurn(m task.Message, c *Request) *agent.Turn {
	return &agent.Turn{
		Leader: tk.leader(), Caller: tk.caller(c), Ref: tk.meta.Ref, Message: m, From: tk.fold.Status().State,
		Known: tk.fold.Task().Products, Revision: tk.meta.Revision, HasWork: tk.hasWork,
		MayAct: tk.engine.mayAct,
	}
}

// hasWork implements agent.Turn's HasWork for the message under way.
func (tk *activeTask) hasWork(ctx context.Context) bool {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	r := tk.run
	if r == nil {
		return !tk.meta.Unsent
	}
	for tk.run == r && !r.answered.happened && ctx.Err() == nil { // a refused message may have been sent again
		answered := r.answered.wait()
		tk.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
		}
		tk.mu.Lock()
	}
	return tk.run == r && !r.settled.happened && r.queuedSince.IsZero()
}

// awaitEndReport waits for the reported end of a task after the agent has refused to cancel it. Agents refuse when the
// task has just ended: the run is about to report it, or the agent must be asked for it. The run may be another one
// than when the agent was asked to cancel: a command accepted meanwhile has begun a turn.
func (tk *activeTask) awaitEndReport(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	for ctx.Err() == nil {
		tk.mu.Lock()
		r := tk.run
		if r == nil {
			tk.mu.Unlock()
			return
		}
		done := r.done.wait()
		tk.mu.Unlock()
		if !wait(done, refusedTimeout) {
			tk.askForEnd(ctx, r)
			return
		}
	}
}

// askForEnd asks the agent whether it has ended the turn of a run, and applies its report.
func (tk *activeTask) askForEnd(ctx context.Context, r *run) {
	tk.mu.Lock()
	err := tk.load(ctx)
	turn := tk.turn()
	tk.mu.Unlock()
	if err != nil {
		return
	}
	guard(ctx, tk.logger, func() (any, error) {
		for rep, err := range r.partner.Agent.Resume(ctx, turn) {
			if err == nil && rep.EndsTurn() {
				if rested, _ := tk.handleReport(ctx, r, rep, nil); rested {
					r.stop()
				}
			}
			break
		}
		return nil, nil
	})
}

// wait waits until c is closed, for at most a time. It reports whether c is closed.
func wait(c <-chan struct{}, max time.Duration) bool {
	timer := time.NewTimer(max)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

// cancelAgent asks the agent to cancel, and returns its answer. A nil error stands for an agent that has stopped, or
// does not know the task.
func cancelAgent(ctx context.Context, tk *activeTask, a Agent, t *agent.Turn) (agent.Report, error) {
	ctx, done := context.WithTimeout(ctx, cancelTimeout)
	defer done()
	rep, err := guard(ctx, tk.logger, func() (agent.Report, error) { return a.Cancel(ctx, t) })
	if task.KindOf(err) == task.TaskNotFound {
		return agent.Report{}, nil
	}
	return rep, err
}
