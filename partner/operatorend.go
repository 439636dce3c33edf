// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"crypto/rand"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxReason is the largest size of an operator's reason to end a task, in bytes.
const maxReason = 1 << 10

// Cancel cancels a task as the operator of the gateway: the status says so, with the reason, if any. The agent is
// asked, as when its Leader cancels the task. It returns the task as it is then: it may have ended otherwise meanwhile.
// An error is of kind TaskNotFound if there is no such task; TaskNotCancelable if it has ended, or its agent refuses;
// UnsupportedOperation if the Partner is not registered.
func (e *Engine) Cancel(ctx context.Context, partner, leader, id, reason string) (Overview, error) {
	why, err := operatorReason(task.Canceled, reason)
	if err != nil {
		return Overview{}, err
	}
	log := logname.New(partner, leader, id)
	if _, err := e.overview(ctx, log); err != nil {
		return Overview{}, err
	}
	p := e.current(partner)
	if p == nil {
		return Overview{}, task.Errorf(task.UnsupportedOperation,
			"the Partner %q is not in the configuration, so its agent cannot be asked to cancel the task", partner)
	}
	c := &Request{Operator: true, Call: task.Call{Message: operatorCancel(leader, id, why)}}
	c.Strict = true
	if _, err := p.Do(ctx, leader, c); err != nil {
		return Overview{}, err
	}
	return e.overview(ctx, log)
}

// Fail ends a task in work at its agent as failed, as the operator of the gateway: the status says so, with the reason,
// if any. The agent is asked to stop, but the task fails whatever it answers, and also if the Partner is not
// registered. It returns the task as it is then. An error is of kind TaskNotFound if there is no such task, and
// UnsupportedOperation if the agent does not work on it, also because it has finished meanwhile.
func (e *Engine) Fail(ctx context.Context, partner, leader, id, reason string) (Overview, error) {
	why, err := operatorReason(task.Failed, reason)
	if err != nil {
		return Overview{}, err
	}
	log := logname.New(partner, leader, id)
	if _, err := e.overview(ctx, log); err != nil { // a log not in the store must not become a task in memory
		return Overview{}, err
	}
	tk := e.acquire(log)
	defer tk.release()
	if err := tk.failByOperator(context.WithoutCancel(ctx), operatorCancel(leader, id, why)); err != nil {
		return Overview{}, err
	}
	return e.overview(ctx, log)
}

// operatorReason returns the text of the status of a task ended by the operator.
func operatorReason(end task.State, reason string) (string, error) {
	if len(reason) > maxReason {
		return "", task.Errorf(task.InvalidParams, "the reason may have %d bytes at most", maxReason).
			WithField("reason")
	}
	why := string(end) + " by the operator of the gateway"
	if reason != "" {
		why += ": " + reason
	}
	return why, nil
}

// operatorCancel returns the message to ask the agent to stop.
func operatorCancel(leader, id, why string) task.Message {
	return task.Message{
		ID: rand.Text(), Command: task.Cancel, SenderRole: task.Leader, SenderID: leader, TaskID: id,
		DataItems: []task.DataItem{task.Text(why)},
	}
}

// failByOperator asks the agent to stop by a message, and ends the task with the message's text, as failed.
func (tk *activeTask) failByOperator(ctx context.Context, m task.Message) error {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	err := tk.update(ctx, func() error {
		if !tk.exists {
			return NotFound(m.TaskID)
		}
		if err := tk.commitPending(ctx); err != nil {
			return err
		}
		return tk.mayFail()
	})
	if err != nil {
		return err
	}
	m = withSentAt(m)
	items := m.DataItems
	if p := tk.partner(); p == nil {
		items = append(items, task.Text("the agent was not informed, because it is not in the configuration"))
	} else {
		turn := tk.cancelTurn(m, nil)
		tk.cancels.begin() // until the agent has answered, no end reported by it is stored
		tk.mu.Unlock()
		_, refusal := cancelAgent(ctx, tk, p.Agent, turn)
		tk.mu.Lock()
		tk.cancels.end()
		if refusal != nil {
			items = append(items, task.Text("the agent may continue: "+detail(refusal)))
		}
	}
	err = tk.update(ctx, func() error {
		if err := tk.mayFail(); err != nil {
			return err
		}
		b := tk.batch()
		b.move(task.Failed, items, nil)
		return b.write(ctx)
	})
	if err != nil {
		return err
	}
	tk.logger().InfoContext(tk.traced(ctx), "the operator has failed a task")
	if tk.run != nil {
		tk.run.stop()
	}
	return nil
}

// mayFail returns an error if the agent does not work on the task: the table has no way from there to failed. tk.mu is
// held.
func (tk *activeTask) mayFail() error {
	switch state := tk.fold.Status().State; {
	case state.Terminal():
		return task.Errorf(task.UnsupportedOperation, "the task has ended already: it is %s", state)
	case state.Settled():
		return task.Errorf(task.UnsupportedOperation,
			"the task is %s: it waits for its Leader and not for its agent; cancel it", state)
	}
	return nil
}
