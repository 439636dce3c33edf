// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	// cancelTimeout is how long an agent may take to say that it has stopped.
	cancelTimeout = 10 * time.Second
	// refusedTimeout is how long a cancel that the agent refused waits for the end of the task, of which the agent may
	// be about to report.
	refusedTimeout = time.Second
)

// cancels are the cancel commands of a task that wait for the agent's answer. They are under the task's mutex.
type cancels struct {
	waiting int
	decided chan struct{} // closed when no cancel waits any more; nil while none does
	// held is the end that the run has reported while cancels wait: Canceled or Failed. It is not written before their
	// answer is known, so that the history names the command that caused it.
	held *agent.Report
}

// hold keeps an end that the run reports for the cancels that wait. It reports false when there are none.
func (c *cancels) holdEnd(end agent.Report) bool {
	if c.waiting > 0 {
		c.held = &end
	}
	return c.waiting > 0
}

func (c *cancels) begin() {
	if c.waiting++; c.waiting == 1 {
		c.decided = make(chan struct{})
	}
}

// end returns the end that was held, to be written now, when the last cancel no longer waits.
func (c *cancels) end() *agent.Report {
	if c.waiting--; c.waiting > 0 {
		return nil
	}
	held := c.held
	close(c.decided)
	c.decided, c.held = nil, nil
	return held
}

// cancel stops the agent, where it is at work, and ends the task. tk.mu is held at the call and at the return, but not
// while the agent is asked. An agent that cannot be asked does not keep a Leader from canceling. One that refuses does,
// unless the task has ended by then: through another cancel, or by itself.
func (p *Partner) cancel(ctx context.Context, tk *activeTask, c *Request) error {
	ctx = context.WithoutCancel(ctx) // what the agent was asked has an effect, whether the caller waits or not
	m := withSentAt(c.Message)
	var items []task.DataItem
	if tk.fold.Task.Status.State != task.AwaitingCompletion {
		turn := &agent.Turn{Ref: tk.meta.Ref, Message: m, Known: tk.fold.Task.Products, Revision: tk.meta.Revision}
		current := tk.run
		tk.cancels.begin()
		tk.mu.Unlock()
		refusal := p.cancelAgent(ctx, tk, turn)
		refused := task.KindOf(refusal) == task.TaskNotCancelable
		if refused && current != nil {
			p.awaitEndReport(ctx, tk, current)
		}
		tk.mu.Lock()
		decided, held := tk.decided, tk.cancels.end()
		if refused && tk.waiting > 0 {
			// The agent may have refused because it obeys another cancel.
			tk.mu.Unlock()
			wait(decided, cancelTimeout)
			tk.mu.Lock()
		}
		if err := tk.load(ctx); err != nil {
			return err
		}
		switch state := tk.fold.Task.Status.State; {
		case !task.Applies(task.Cancel, state):
			return nil // it has ended in the meantime: the Leader is answered how
		case held != nil && held.State == task.Canceled:
			items = held.Items
		case held != nil && refused:
			return tk.fail(ctx, held.Items[0].Text)
		case refused && !state.Settled():
			return refusal
		case refusal != nil:
			items = []task.DataItem{task.Text("canceled here, but the agent could not be told: " + detail(refusal))}
		}
	}
	b := tk.batch()
	b.move(task.Canceled, items, &m)
	if err := b.write(ctx); err != nil {
		return err
	}
	if tk.run != nil {
		tk.run.stop()
	}
	return nil
}

// hearEnd has the agent report the end of a task that it refused to cancel, because agents refuse when the task has just
// ended: the run is about to report it, or has not asked for it yet.
func (p *Partner) awaitEndReport(ctx context.Context, tk *activeTask, r *run) {
	if wait(r.done, refusedTimeout) {
		return
	}
	tk.mu.Lock()
	err := tk.load(ctx)
	turn := tk.turn()
	tk.mu.Unlock()
	if err != nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, refusedTimeout)
	defer done()
	guard(tk.logger, func() (any, error) {
		for rep, err := range p.Agent.Resume(ctx, turn) {
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

// wait waits until c is closed, but not for longer than max. It reports whether it is.
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

// askToStop asks the agent to cancel. A nil error means that it stopped, or has nothing to stop.
func (p *Partner) cancelAgent(ctx context.Context, tk *activeTask, t *agent.Turn) error {
	ctx, done := context.WithTimeout(ctx, cancelTimeout)
	defer done()
	_, err := guard(tk.logger, func() (agent.Report, error) { return p.Agent.Cancel(ctx, t) })
	if task.KindOf(err) == task.TaskNotFound {
		return nil
	}
	return err
}
