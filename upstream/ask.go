// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// The longest times of requests about a task.
const (
	pollTimeout   = 30 * time.Second // for one poll
	askTimeout    = 10 * time.Second // for a request about a task after its run has failed
	restTimeout   = 5 * time.Second  // for the request about a task ended by a stream
	cancelTimeout = 2 * time.Second  // for a cancel to take effect
)

// Cancel implements partner.Agent. Some agents answer before the task is canceled, so the task is polled until it is
// settled, for at most cancelTimeout. If the dialect has no cancel (translate.Canceler), nothing is sent: the caller
// ends the turn's run, closing its connection, and the task is canceled. If it has no get (translate.Getter), only the
// answer to the cancel is known. A request stopping the whole session (translate.SessionCanceler) is sent only if the
// agent works on the task.
func (a *Agent) Cancel(ctx context.Context, t *agent.Turn) (rep agent.Report, err error) {
	defer func() { a.config.Secrets.hideInEnd(&rep) }()
	r := run{Agent: a, ctx: ctx, turn: t}
	if err := r.resolve(); err != nil {
		return agent.Report{}, err
	}
	ok, session := r.facets.Canceler != nil, r.facets.SessionCanceler != nil
	canceled := agent.Report{State: task.Canceled}
	switch {
	case !ok && !session && !r.hasWork(0):
		return canceled, nil
	case !ok:
		canceled.Items = []task.DataItem{task.Text(fmt.Sprintf("canceled here; %s cannot cancel, so the connection to "+
			"the agent was closed, and the agent may continue its work", r.codec.Name()))}
		return canceled, nil
	}
	rep, err = r.cancel(t)
	if task.KindOf(err) == task.TaskNotFound && r.turn.Ref == t.Ref && r.names.has(t) {
		rep, err = r.cancel(t) // the cancel has arrived before the turn
	}
	if session && (err == errNoWork || onlyReceived(err)) {
		return canceled, nil
	}
	if err != nil {
		return agent.Report{}, r.unknownMethod(err)
	}
	if rep.EndsTurn() || r.facets.Getter == nil {
		return rep, nil
	}
	short, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	for wait := pollFirst; sleep(short, wait); wait *= 2 {
		if now, err := r.get(short); err == nil {
			if rep = now; rep.EndsTurn() {
				break
			}
		}
	}
	if ctx.Err() != nil {
		return agent.Report{}, Ended(ctx)
	}
	if rep.State == task.None && rep.NativeState == "" {
		canceled.Items = []task.DataItem{task.Text("canceled; the agent has taken the cancel, and does not say how the " +
			"task stands")}
		return canceled, nil
	}
	return rep, nil
}

// errNoWork is the error of a cancel that is not sent, because the agent does not work on the task.
var errNoWork = errors.New("upstream: the agent does not work on the task")

// mayCancel returns errNoWork if a request would stop the run of another task (translate.SessionCanceler). It is called
// right before the request is sent. It waits for the agent's answer to a message being sent, for at most cancelTimeout:
// the session may be busy with the run of another task.
func (r *run) mayCancel() error {
	if r.facets.SessionCanceler != nil && !r.hasWork(cancelTimeout) {
		return errNoWork
	}
	return nil
}

// hasWork reports whether the agent works on the task to be canceled. It waits for the agent's answer, but not longer
// than most.
func (r *run) hasWork(most time.Duration) bool {
	if r.turn.From.Settled() {
		return false
	}
	if r.turn.HasWork == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(r.ctx, most)
	defer cancel()
	return r.turn.HasWork(ctx)
}

// cancel asks the agent once to stop the task of t, by the agent's name for it.
func (r *run) cancel(t *agent.Turn) (_ agent.Report, err error) {
	if r.turn, err = r.names.of(r.ctx, t); err != nil {
		return agent.Report{}, err
	}
	q := r.query(translate.Cancel)
	q.Body = q.codec.(translate.Canceler).AppendCancel(nil, r.turn.Ref)
	return r.call(r.ctx, q)
}

// Complete implements partner.Agent. It informs an agent waiting for the Leader's decision of the completion of the
// task.
func (a *Agent) Complete(ctx context.Context, t *agent.Turn) error {
	r := run{Agent: a, ctx: ctx, turn: t}
	if err := r.resolve(); err != nil {
		return err
	}
	if r.facets.Completer == nil {
		return nil
	}
	q := r.query(translate.Complete)
	q.Body = q.codec.(translate.Completer).AppendComplete(nil, t.Ref)
	_, err := r.call(ctx, q)
	return err
}

// Describe returns the agent's card for callers known to it. For an agent without one, the error is of kind
// UnsupportedOperation.
func (a *Agent) Describe(ctx context.Context) ([]byte, error) {
	r := run{Agent: a, ctx: ctx, turn: &agent.Turn{}}
	if err := r.resolve(); err != nil {
		return nil, err
	}
	if r.facets.Describer == nil {
		return nil, task.Errorf(task.UnsupportedOperation, "the agent has no card but the public one")
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if !r.config.Slots.questions.acquire(ctx, r.turn.Leader) {
		return nil, Ended(ctx)
	}
	defer r.config.Slots.questions.release(r.turn.Leader)
	q := r.query(translate.Describe)
	codec := q.codec.(translate.Describer)
	q.Body = codec.AppendDescribe(nil)
	x, err := begin(ctx, r.transport.Routes(translate.Describe)[0], q)
	if err != nil {
		return nil, err
	}
	var card []byte
	m, err := x.Next()
	if err == nil {
		if card, err = codec.Description(m.Data); err != nil {
			err = r.refused(x, err)
		}
	}
	x.Close(err)
	return card, err
}

// get asks for the turn's task. The reference implementation of ACPs v1 fails if it does not know the task; a task that
// is started by the gateway's name for it can be started again.
func (r *run) get(ctx context.Context) (agent.Report, error) {
	if r.facets.Getter == nil {
		return agent.Report{}, task.Errorf(task.UnsupportedOperation,
			"the agent cannot be asked for the state of a task")
	}
	q := r.query(translate.Get)
	q.Body = q.codec.(translate.Getter).AppendGet(nil, r.turn.Ref)
	rep, err := r.call(ctx, q)
	if r.facets.Repeater != nil && ReasonOf(err) == ServerFailed {
		err = task.Errorf(task.TaskNotFound, "the agent does not report the task").WithCause(err)
	}
	return rep, err
}

// getWithin is get for a run: it does not wait longer than for a time or IdleTimeout.
func (r *run) getWithin(most time.Duration) (agent.Report, error) {
	ctx, cancel := context.WithTimeout(r.ctx, min(most, r.config.IdleTimeout))
	defer cancel()
	rep, err := r.get(ctx)
	if err == nil {
		r.noteKept(&rep)
	}
	return rep, err
}

// call sends a request with one answer, in a slot for requests with an answer due soon.
func (r *run) call(ctx context.Context, q *query) (agent.Report, error) {
	if !r.config.Slots.questions.acquire(ctx, r.turn.Leader) {
		return agent.Report{}, Ended(ctx)
	}
	defer r.config.Slots.questions.release(r.turn.Leader)
	return r.roundTrip(ctx, q, r.turn.Known)
}

// roundTrip sends a request with one answer by the first route accepted by the agent.
func (r *run) roundTrip(ctx context.Context, q *query, known []task.Product) (agent.Report, error) {
	var first error
	for _, route := range r.transport.Routes(q.Operation) {
		rep, err := r.roundTripBy(ctx, route, q, known)
		if err == nil {
			route.Confirm()
			return rep, nil
		}
		if !r.notTaken(translate.Send, err) {
			return rep, err
		}
		if first == nil {
			first = err
		}
	}
	return agent.Report{}, first
}

func (r *run) roundTripBy(
	ctx context.Context, route Route, q *query, known []task.Product,
) (rep agent.Report, err error) {
	defer func() { r.config.Traffic.note(ctx, err) }()
	if q.Operation != translate.Get { // a Get changes nothing
		if err := r.mayAct(ctx, q.Operation); err != nil {
			return rep, err
		}
	}
	if q.Operation == translate.Cancel {
		if err := r.mayCancel(); err != nil {
			return rep, err
		}
	}
	x, err := begin(ctx, route, q)
	if err != nil {
		return agent.Report{}, err
	}
	defer func() { x.Close(err) }()
	return r.reply(x, known)
}

// reply reads the one answer to a request. If it is a stream, it is read to its end.
func (r *run) reply(x asked, known []task.Product) (agent.Report, error) {
	if x.Streams() {
		return r.drain(x, known)
	}
	m, err := x.Next()
	if err != nil {
		return agent.Report{}, err
	}
	rep, err := x.codec.Reply(m.Data, known)
	if err != nil {
		return agent.Report{}, r.refused(x, err)
	}
	return rep, nil
}

// register gives the agent the webhook of the turn, in the slot of the turn. The answer means only: the agent has taken
// the request.
func (r *run) register(q *query) error {
	ctx, cancel := context.WithTimeout(r.ctx, askTimeout)
	defer cancel()
	_, err := r.roundTripBy(ctx, r.transport.Routes(translate.Register)[0], q, nil)
	if onlyReceived(err) {
		return nil
	}
	return err
}

// onlyReceived reports whether err is that of an answer not of the dialect, when it need not be one: the agent has
// received the request.
func onlyReceived(err error) bool {
	return err == nil || task.KindOf(err) == task.InvalidAgentResponse && ReasonOf(err) == NoReason
}
