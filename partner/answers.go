// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// handedOver reports whether the engine was closed while the process goes on: another one owns the shard.
func (p *Partner) handedOver() bool {
	select {
	case <-p.Stopping:
		return false
	default:
		return p.engine.base.Err() != nil
	}
}

// await waits for the turn of a command, for at most its response time (see run.awaitAnswer), and returns the task,
// and the number of its last event.
func (p *Partner) await(ctx context.Context, r *outcome, c *Request) (t task.Task, last uint64, err error) {
	until, tk, turn := time.Now().Add(r.response), r.tk, r.turn
	if turn != nil {
		err = turn.awaitAnswer(ctx, until, c)
		err = cmp.Or(err, turn.leave())
	} else {
		turn = r.again
		err = turn.waitAnswer(ctx, until, c)
	}
	if err != nil {
		return t, 0, err
	}
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if decided := tk.decided; tk.held != nil { // the turn has ended, and a cancel is about to write its end
		tk.mu.Unlock()
		ctx, done := context.WithDeadline(ctx, until)
		select {
		case <-decided:
		case <-ctx.Done():
		}
		done()
		tk.mu.Lock()
	}
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
	if err == nil && !t.Status.State.Settled() && p.handedOver() {
		err = Moved() // the next owner goes on with the turn, and knows the command again
	}
	if err != nil {
		return task.Task{}, 0, err
	}
	return t, tk.logState.last, nil
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
		old := func(m task.Message) bool { // an agent may say more than one thing at a time
			return m.SentAt.Before(after) || m.SentAt.Equal(after) && !isRemark(m)
		}
		t.MessageHistory = slices.DeleteFunc(slices.Clone(t.MessageHistory), old)
	}
	if after := c.StatesAfter; !after.IsZero() {
		old := func(s task.Status) bool { return !s.ChangedAt.After(after) }
		t.StatusHistory = slices.DeleteFunc(slices.Clone(t.StatusHistory), old)
	}
	return t
}

// pendingTask returns a task with a pending start, as it is shown to a Tentative dialect.Policy: it has no state yet.
// tk.mu is held.
func (tk *activeTask) pendingTask(c *Request) task.Task {
	m := *tk.meta.Pending
	t := task.Task{ID: m.TaskID, SessionID: m.SessionID, GroupID: m.GroupID}
	t.Status.ChangedAt = tk.meta.PendingAt
	if c.Message.Command == task.Get || c.Histories {
		t.MessageHistory = []task.Message{m}
	}
	return t
}
