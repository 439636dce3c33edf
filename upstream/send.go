// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// largeMessage is the size, in bytes, of a message whose request is not kept while the agent works.
const largeMessage = 256 << 10

// errNoStreams says that the agent has no streams by any route, and has done nothing.
var errNoStreams = errors.New("upstream: the agent has no streams")

// send sends the turn's message by the first route on which the agent takes it, and reports what the agent answers
// until the turn ends. The agent may answer either operation by a stream or by one message.
func (r *run) send(op translate.Operation) error {
	var first error
	for _, route := range r.transport.Routes(op) {
		taken, err := r.sendBy(route, op)
		if taken {
			return err
		}
		if first == nil {
			first = err
		}
	}
	if op == translate.SendStream {
		return errNoStreams
	}
	return r.failed(first, task.State.Terminal)
}

// sendBy is send by one route. taken is false where the agent does not take the operation there, and has done nothing;
// err is what it answered.
func (r *run) sendBy(route Route, op translate.Operation) (taken bool, err error) {
	if err := r.acquire(); err != nil {
		return true, err
	}
	// The slot is given back before the task is polled: each question takes one of its own.
	x, err := route.Open(r.ctx, r.message(op, r.turn))
	if err != nil {
		r.config.Slots.turns.release()
		return true, r.failed(err, task.State.Terminal)
	}
	if x.Streams() {
		return r.receive(x, route, op)
	}
	rep, err := r.reply(x, r.turn.Known)
	x.Close(err)
	r.config.Slots.turns.release()
	switch {
	case err == nil:
		if op == translate.Send {
			route.Confirm()
		}
		return true, r.follow(rep, nil)
	case r.notTaken(op, err):
		return false, err
	}
	return true, r.failed(err, task.State.Terminal)
}

// receive reports the events of a stream that answers the turn, and continues by polling where it is cut. It closes the
// exchange and releases the turn's slot.
func (r *run) receive(x Exchange, route Route, op translate.Operation) (taken bool, err error) {
	seen, acted, err := r.readAndClose(x)
	if seen {
		route.Confirm()
	}
	cut := ReasonOf(err) == StreamCut
	switch {
	case err == nil: // the turn has ended, or the caller takes no more
		return true, nil
	case r.ctx.Err() != nil:
		return true, Ended(r.ctx)
	case cut && !seen && !r.unnamed(r.turn):
		return true, Failed(task.InvalidAgentResponse, StreamCut, err,
			"the connection to the agent broke before it reported anything")
	case cut:
		r.logCut()
		return true, r.resume(!acted)
	case !seen && r.notTaken(op, err):
		return false, err
	case seen: // so a task that is settled now was settled by this turn, and not by the last one
		return true, r.failed(err, task.State.Settled)
	}
	return true, r.failed(err, task.State.Terminal)
}

// readAndClose reads a stream, closes it, and releases the turn's slot, even where the codec panics.
func (r *run) readAndClose(x Exchange) (seen, acted bool, err error) {
	defer r.config.Slots.turns.release()
	defer func() {
		if err == nil && r.stopped {
			x.Close(ErrAbandoned)
			return
		}
		x.Close(err)
	}()
	return r.read(x)
}

func (r *run) logCut() {
	r.log.LogAttrs(r.ctx, slog.LevelWarn, "the agent's stream was cut; the task is polled",
		slog.String("task", r.turn.Ref.Task))
}

// message returns the request that sends a turn.
func (r *run) message(op translate.Operation, t *agent.Turn) *Request {
	size := int(t.Message.Size())
	encode := func() []byte {
		return r.codec.AppendTurn(make([]byte, 0, 512+size), t, op == translate.SendStream)
	}
	req := &Request{Operation: op, Ref: t.Ref, IdleTimeout: r.config.IdleTimeout}
	if size > largeMessage {
		req.Encode = encode
	} else {
		req.Body = encode()
	}
	return req
}

// mayStream reports whether the turn's message may ask for a stream.
func (r *run) mayStream() bool {
	if m, ok := r.codec.(translate.Mounted); ok {
		return m.Streams(r.turn) && !r.streamless.Load()
	}
	return !r.unnamed(r.turn) || !r.streamless.Load()
}

// notTaken reports whether an error that answers a message means that the agent does not take the operation by the
// route that it was sent by, and has done nothing.
func (r *run) notTaken(op translate.Operation, err error) bool {
	kind, reason := task.KindOf(err), ReasonOf(err)
	if op != translate.SendStream {
		return kind == task.MethodNotFound || reason == NoAgent
	}
	_, mounted := r.codec.(translate.Mounted)
	switch {
	case kind == task.MethodNotFound, kind == task.UnsupportedOperation:
		return true
	case kind == task.TaskNotFound: // where no task was named, REST says so of a path that does not exist
		return r.unnamed(r.turn)
	case mounted && reason == NoAgent:
		return true
	case mounted && reason == ServerFailed:
		missed, _ := r.missed()
		return missed
	}
	return false
}

// failed returns the error of a turn that went wrong, or reports what the agent has stored of the turn in its place if
// that is final: some agents answer a turn that fails by an error of their own.
func (r *run) failed(err error, final func(task.State) bool) error {
	if k := task.KindOf(err); (k == task.Internal || k == task.AgentTimeout) && r.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(r.ctx, askTimeout)
		rep, bad := r.get(ctx)
		cancel()
		if bad == nil && final(rep.State) && !untouched(r.turn, &rep) {
			r.report(rep)
			return nil
		}
	}
	return r.unknownMethod(err)
}

// unknownMethod turns an agent's "no such method" into an error for the Leader, which has called another method.
func (r *run) unknownMethod(err error) error {
	if task.KindOf(err) != task.MethodNotFound {
		return err
	}
	return Failed(task.InvalidAgentResponse, WrongDialect, err,
		"the agent does not speak %s; the operator must check its dialect", r.codec.Name())
}
