// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// errNoStreams is the error of an agent without streams by any route. It has done nothing, as far as it says.
var errNoStreams = errors.New("upstream: the agent has no streams")

// send sends the turn's message by the first route accepted by the agent, and reports the agent's answer until the turn
// ends. The agent may answer either operation by a stream or by one message.
func (r *run) send(op translate.Operation) error {
	routes := r.transport.Routes(op)
	if r.begun != nil {
		routes = r.begun.routes
	}
	var first error
	for _, route := range routes {
		taken, err := r.sendBy(route, op)
		if taken {
			return err
		}
		if first == nil {
			first = err
		}
	}
	if op == translate.SendStream {
		return errors.Join(errNoStreams, first)
	}
	return r.failed(first, task.State.Terminal)
}

// sendBy is send by one route. taken is false if the agent does not take the operation there, and has done nothing; err
// is its answer.
func (r *run) sendBy(route Route, op translate.Operation) (taken bool, err error) {
	if r.begun == nil {
		if err := r.acquire(); err != nil {
			return true, err
		}
	}
	got, err := r.exchange(route, op)
	if got.streamed {
		return r.streamed(got, err, route, op)
	}
	switch {
	case err == nil:
		if op == translate.Send {
			route.Confirm()
		}
		return true, r.follow(got.report, nil)
	case got.answered && r.notTaken(op, err):
		return false, err
	}
	return true, r.failed(err, task.State.Terminal)
}

// received is an agent's answer to one request of a turn.
type received struct {
	answered bool // the agent has begun to answer
	streamed bool // by a stream, with its events reported already
	brought       // by the stream
	report   agent.Report
}

// exchange sends a request of the turn in the slot acquired by the caller, reads the answer, and releases the slot:
// each poll takes one of its own. An exchange begun inline is continued.
func (r *run) exchange(route Route, op translate.Operation) (got received, err error) {
	if b := r.begun; b != nil {
		r.begun = nil
		if b.x.Exchange == nil {
			return b.got, b.err
		}
		return r.receive(b.x, b.got.answered)
	}
	x, err := r.open(route, op)
	if err != nil {
		return got, err
	}
	if r.turn.Sent != nil && op == translate.Send {
		defer r.turn.Sent()()
	}
	return r.receive(x, false)
}

// open begins the exchange of a request of the turn. After an error the slot is released.
func (r *run) open(route Route, op translate.Operation) (x asked, err error) {
	defer func() {
		if x.Exchange == nil { // also after a bug of the codec
			r.config.Slots.turns.release(r.turn.Leader)
		}
		if err != nil {
			r.config.Traffic.note(r.ctx, err)
		}
	}()
	q := r.requestOf(op)
	x.codec = q.codec
	if err := r.mayAct(r.ctx, op); err != nil {
		return x, err
	}
	if x.Exchange, err = route.Open(r.ctx, &q.Request); err == nil {
		x.trial = r.trial.sends(op)
	}
	return x, err
}

// heldBack is the error of a turn's message not sent because the process may not act for its task.
type heldBack struct{ error }

// Unwrap returns the reason.
func (h heldBack) Unwrap() error { return h.error }

// isHeldBack reports whether an error is a heldBack.
func isHeldBack(err error) bool {
	_, is := errors.AsType[heldBack](err)
	return is
}

// mayAct waits until a request of the turn may be sent; inline, for as long as the inline part may take.
func (r *run) mayAct(ctx context.Context, op translate.Operation) error {
	if r.turn.MayAct == nil {
		return nil
	}
	if r.interrupt != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.interrupt.Until)
		defer cancel()
	}
	err := r.turn.MayAct(ctx)
	if err != nil && (op == translate.Send || op == translate.SendStream) {
		return heldBack{err}
	}
	return err
}

// receive reads the answer to a request of the turn, closes the exchange, and releases the slot. A bug of the codec
// must not cost the slot or the connection either. answered reports whether the agent has begun to answer. An
// interrupted exchange stays open, in its slot.
func (r *run) receive(x asked, answered bool) (got received, err error) {
	closing := ErrAbandoned // of a panic, and of a caller taking no more reports
	defer func() {
		if err == ErrInterrupted {
			return
		}
		x.Close(closing)
		r.config.Slots.turns.release(r.turn.Leader)
	}()
	if got.answered = answered; !answered {
		if err = x.Begin(); err != nil {
			closing = err
			if err != ErrInterrupted {
				r.config.Traffic.note(r.ctx, err)
			}
			return got, err
		}
		got.answered = true
	}
	switch got.streamed = x.Streams(); {
	case got.streamed && r.interrupt != nil:
		return got, ErrInterrupted // a stream may be long
	case got.streamed:
		r.config.Traffic.see(nil)
		got.brought, err = r.read(x)
	default:
		if got.report, err = r.reply(x, r.turn.Known); err == nil {
			err = r.renamed(&got.report)
		}
	}
	if err != ErrInterrupted {
		r.config.Traffic.note(r.ctx, err)
	}
	if err != nil || !r.stopped {
		closing = err
	}
	return got, err
}

// streamed interprets the end of the stream in answer to the turn's message, and polls if the stream was cut.
func (r *run) streamed(got received, err error, route Route, op translate.Operation) (taken bool, _ error) {
	if got.seen {
		route.Confirm()
		r.Endpoint.streams.seen.Store(true)
	}
	cut := ReasonOf(err) == StreamCut
	if r.trial != nil {
		r.trial.Cut = cut
	}
	r.ended = r.endedBy(got.brought, err)
	switch {
	case err == nil: // the turn has ended, or the caller takes no more
		return true, nil
	case r.ctx.Err() != nil:
		return true, Ended(r.ctx)
	case cut && !got.seen && !r.unnamed(r.turn):
		return true, Failed(task.InvalidAgentResponse, StreamCut, err,
			"the connection to the agent broke before it reported anything")
	case cut:
		if !got.seen && op == translate.SendStream { // anything after it is no answer to that
			r.noteStream(err)
		}
		r.logCut()
		return true, r.resume(!got.acted)
	case !got.seen && r.notTaken(op, err):
		return false, err
	case got.seen: // so a task settled now was settled by this turn, and not by the last one
		return true, r.failed(err, task.State.Settled)
	}
	return true, r.failed(err, task.State.Terminal)
}

func (r *run) logCut() {
	if r.facets.Getter == nil {
		return // the task fails with that reason, or the caller has canceled it
	}
	r.logger().LogAttrs(r.ctx, slog.LevelWarn, "the agent's stream was cut; the task is polled")
}

// requestOf returns the request carrying the turn, for an operation.
func (r *run) requestOf(op translate.Operation) *query {
	if op == translate.Resubscribe {
		q := r.query(op)
		q.Body = q.codec.(translate.Resubscriber).AppendResubscribe(nil, r.turn.Ref)
		return q
	}
	return r.message(op, r.turn)
}

// message returns the request with a turn's message.
func (r *run) message(op translate.Operation, t *agent.Turn) *query {
	size := int(t.Message.Size())
	r.hold()
	q := r.queryOf(op, t)
	q.Interrupt = r.interrupt
	q.Encode = func(dst []byte) []byte {
		return q.codec.AppendTurn(slices.Grow(dst, 128+size), t, q.Operation == translate.SendStream)
	}
	return q
}

// asksForStream reports whether the turn's message asks for a stream, for a caller asking for one or not.
func (r *run) asksForStream(stream bool) bool {
	asks := stream || r.facets.Streamer != nil || r.unnamed(r.turn)
	return asks && !r.noStreams && r.mayStream() && !r.hasNoStreams()
}

// mayStream reports whether the turn's message may ask for a stream.
func (r *run) mayStream() bool {
	if m := r.facets.Mounted; m != nil {
		return m.Streams(r.turn) && !r.streamless.Load()
	}
	return !r.unnamed(r.turn) || !r.streamless.Load()
}

// notTaken reports whether an error in answer to a message means: the agent does not take the operation by this route,
// and has done nothing.
func (r *run) notTaken(op translate.Operation, err error) bool {
	kind, reason := task.KindOf(err), ReasonOf(err)
	if op != translate.SendStream {
		return kind == task.MethodNotFound || reason == NoAgent
	}
	mounted := r.facets.Mounted != nil
	switch {
	case kind == task.MethodNotFound, kind == task.UnsupportedOperation, r.refusesStream(err):
		return true
	case kind == task.TaskNotFound: // if no task was named, this is REST's error for an unknown path
		return r.unnamed(r.turn)
	case mounted && reason == NoAgent:
		return true
	case mounted && reason == ServerFailed:
		if r.facets.Repeater != nil && r.starts() {
			return true
		}
		got, _ := r.receipt()
		return got == missing
	}
	return false
}

// failed returns the error of a failed turn. If the agent's stored state of the turn is final, it reports this in its
// place: some agents answer a failing turn by an error of their own.
func (r *run) failed(err error, final func(task.State) bool) error {
	if refused := r.refusal(err); refused != nil {
		return refused
	}
	k := task.KindOf(err)
	if (k == task.Internal || k == task.AgentTimeout) && r.ctx.Err() == nil && (r.heard || !r.unnamed(r.turn)) {
		rep, bad := r.getWithin(askTimeout)
		if bad == nil && final(rep.State) && !untouched(r.turn, &rep) {
			r.report(rep)
			return nil
		}
	}
	return r.unknownMethod(err)
}

// refusal returns an error in answer to the message of a start, with its reason, if the agent thereby declines to begin
// the task; otherwise nil.
func (r *run) refusal(err error) error {
	e, ok := errors.AsType[*task.Error](err)
	if !ok || r.heard || !r.starts() || ReasonOf(err) != NoReason {
		return nil
	}
	switch e.Kind {
	case task.InvalidParams, task.TaskNotFound, task.UnsupportedOperation, task.ContentTypeNotSupported,
		task.NotificationNotSupported, task.LimitExceeded:
		refused := *e
		return refused.WithCause(&Error{Reason: Refused, Err: e.Err})
	}
	return nil
}

// unknownMethod turns an agent's "no such method" into an error for the Leader: it has called another method.
func (r *run) unknownMethod(err error) error {
	if task.KindOf(err) != task.MethodNotFound {
		return err
	}
	return Failed(task.InvalidAgentResponse, WrongDialect, err,
		"the agent does not speak %s; the operator must check its dialect", r.codec.Name())
}
