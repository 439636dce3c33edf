// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// receipt is an agent's word on a message after its connection broke.
type receipt uint8

const (
	unclear   receipt = iota // it does not say whether it has the message
	delivered                // it has the message
	missing                  // it does not have the message, or does not know it yet
)

// missed asks the agent whether it has the turn, and reports whether it has not. An agent without it is asked for as
// long as ResendAfter, because it may have read the message and not know the task yet. cause is the reason for asking.
// After an error the turn must fail: such a message is not sent again.
func (p *retry) missed(cause error) (bool, error) {
	r, begun, wait := p.run, time.Now(), retryFirst
	for {
		got, err := r.receipt()
		switch {
		case r.ctx.Err() != nil:
			return false, Ended(r.ctx)
		case got == missing:
			asked := time.Since(begun)
			if asked >= r.config.ResendAfter {
				p.pace.until = p.pace.until.Add(asked) // RetryFor is for sending
				return true, r.mayResend(cause)
			}
			if !sleep(r.ctx, min(r.jitter(wait), r.config.ResendAfter-asked)) {
				return false, Ended(r.ctx)
			}
			wait = min(2*wait, retryMost)
		case err == nil || !mayPass(err) || p.pace.over(err) || !p.pace.pause(r.ctx, r.jitter):
			return false, nil
		}
	}
}

// notReceived is the error of a resumed turn not received by the agent, and free to be sent.
func notReceived() *task.Error {
	return task.Errorf(task.AgentUnavailable, "the agent has not received the message")
}

// receipt asks the agent once whether it has the turn.
func (r *run) receipt() (receipt, error) {
	rep, err := r.getWithin(askTimeout)
	switch {
	case r.starts() && task.KindOf(err) == task.TaskNotFound:
		return missing, nil
	case err != nil:
		return unclear, err
	case !untouched(r.turn, &rep):
		return delivered, nil
	case r.facets.LateActor == nil:
		return missing, nil
	}
	return r.receiptByMessages()
}

// receiptByMessages asks the agent once for the messages of the task. A late-acting agent has received a message if it
// is one of them.
func (r *run) receiptByMessages() (receipt, error) {
	q := r.query(translate.Get)
	codec := q.codec.(translate.LateActor)
	q.Body = codec.AppendGetMessages(nil, r.turn.Ref)
	var has, known bool
	err := r.ask(q, func(body []byte) (err error) {
		has, known, err = codec.Received(body, r.turn)
		return err
	})
	switch {
	case err != nil:
		return unclear, err
	case has:
		return delivered, nil
	case known:
		return missing, nil
	}
	return unclear, nil
}

// starts reports whether the turn is the first of its task.
func (r *run) starts() bool {
	return r.turn.From == task.None && r.turn.Message.Command != task.Continue
}

// untouched reports whether an agent's task is settled exactly as it was at the end of the turn before.
func untouched(t *agent.Turn, rep *agent.Report) bool {
	return t.Revision != "" && rep.EndsTurn() && rep.Revision == t.Revision && offersTheSame(t, rep)
}

// offersTheSame reports whether an agent's task has its products from the end of the turn before, and no others.
func offersTheSame(t *agent.Turn, rep *agent.Report) bool {
	return len(task.Diff(slices.Concat(t.Withdrawn, t.Known), rep.Products)) == 0
}

// ignored returns an error if an agent has ended its task for good before the message of the turn, and will not act on
// it: the products of the turn before are no answer to it.
func (r *run) ignored(rep *agent.Report) error {
	t := r.turn
	same := rep.Full && len(rep.Products) > 0 && t.From == task.AwaitingCompletion && offersTheSame(t, rep)
	if !rep.Closed || r.acted || !same && !untouched(t, rep) {
		return nil
	}
	return task.Errorf(task.UnsupportedOperation, "the agent has completed its task by itself and has not acted on the "+
		"message; start another task")
}
