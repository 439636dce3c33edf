// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// How long one question may take.
const (
	pollTimeout   = 30 * time.Second // for one question about a task that is polled
	askTimeout    = 10 * time.Second // for one question about a task whose run has failed
	cancelTimeout = 2 * time.Second  // for a cancel to take effect
)

type yield = func(agent.Report, error) bool

// Run implements partner.Agent.
func (h *HTTP) Run(ctx context.Context, t *agent.Turn, stream bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		unnamed := h.unnamed(t)
		if unnamed {
			report, end := h.names.begin(t)
			defer end()
			told := yield
			yield = func(rep agent.Report, err error) bool {
				more := told(rep, err)
				report(&rep)
				return more
			}
		}
		carry := func(yield func(agent.Report, error) bool) {
			switch {
			case h.config.Callbacks != nil && h.config.Pushes != nil && h.config.Pushes(ctx):
				h.pushed(ctx, t, yield)
			case h.mayStream(t) && (stream || unnamed):
				h.stream(ctx, t, yield)
			default:
				h.send(ctx, t, yield)
			}
		}
		h.patiently(ctx, yield, func(yield func(agent.Report, error) bool) { h.reach(ctx, t, yield, carry) })
	}
}

// Resume implements partner.Agent.
func (h *HTTP) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) { h.resume(ctx, t, t.Acknowledged, yield) }
}

// Cancel implements partner.Agent. Some agents answer before the task is canceled, so the state is asked for
// until it rests, for a short time.
func (h *HTTP) Cancel(ctx context.Context, t *agent.Turn) (agent.Report, error) {
	canceler, ok := h.config.Codec.(translate.Canceler)
	if !ok {
		return agent.Report{State: task.Canceled}, nil
	}
	t, err := h.names.of(ctx, t)
	if err != nil {
		return agent.Report{}, err
	}
	rep, err := h.call(ctx, t, errand{what: translate.Cancel, ref: t.Ref, body: canceler.AppendCancel(nil, t.Ref)})
	if err != nil {
		return agent.Report{}, h.unknownMethod(err)
	}
	if rep.EndsTurn() {
		return rep, nil
	}
	short, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	for wait := pollFirst; ; wait *= 2 {
		if _, ok := pause(short, wait, new(follow)); !ok {
			break
		}
		if now, err := h.get(short, t); err == nil {
			if rep = now; rep.EndsTurn() {
				break
			}
		}
	}
	if ctx.Err() != nil {
		return agent.Report{}, ended(ctx)
	}
	return rep, nil
}

// call sends a request that has one answer.
func (h *HTTP) call(ctx context.Context, t *agent.Turn, e errand) (agent.Report, error) {
	u := h.rpc.url()
	other := h.rpc.other(u)
	if other == nil {
		return h.callAt(ctx, t, e, u) // and the request is let go of when it has been sent
	}
	rep, err := h.callAt(ctx, t, e, u)
	switch {
	case err == nil:
		h.rpc.here(u)
	case notHere(err):
		if rep, err := h.callAt(ctx, t, e, other); !notHere(err) {
			h.rpc.here(other)
			return rep, err
		}
	}
	return rep, err
}

// callAt sends a request to u. The slot for a turn is its caller's to take; all others take one here.
func (h *HTTP) callAt(ctx context.Context, t *agent.Turn, e errand, u *url.URL) (agent.Report, error) {
	if e.what != translate.Send {
		if !h.config.Slots.asks.acquire(ctx) {
			return agent.Report{}, ended(ctx)
		}
		defer h.config.Slots.asks.release()
	}
	x, err := h.open(ctx, e, u, h.unary)
	if err != nil {
		return agent.Report{}, err
	}
	rep, err := x.reply(t.Known)
	x.close(err)
	return rep, err
}

// get asks for a task. The reference implementation of ACPs v1 fails where it does not know one, and a task that is
// started by the gateway's name for it can be started again.
func (h *HTTP) get(ctx context.Context, t *agent.Turn) (agent.Report, error) {
	getter, ok := h.config.Codec.(translate.Getter)
	if !ok {
		return agent.Report{}, task.Errorf(task.UnsupportedOperation, "the agent cannot be asked for the state of a task")
	}
	rep, err := h.call(ctx, t, errand{what: translate.Get, ref: t.Ref, body: getter.AppendGet(nil, t.Ref)})
	if h.repeats && errors.Is(err, errFault) {
		err = task.Errorf(task.TaskNotFound, "the agent says nothing of the task").WithCause(err)
	}
	return rep, err
}

// keptForRetry is the size of a message, in bytes, beyond which it is encoded again for each request rather than kept.
const keptForRetry = 256 << 10

func (h *HTTP) turn(t *agent.Turn, stream bool) errand {
	what := translate.Send
	if stream {
		what = translate.SendStream
	}
	size := int(t.Message.Size())
	encode := func() []byte { return h.config.Codec.AppendTurn(make([]byte, 0, 512+size), t, stream) }
	if size > keptForRetry {
		return errand{what: what, ref: t.Ref, again: encode}
	}
	return errand{what: what, ref: t.Ref, body: encode()}
}

// send carries a turn out by a request that is answered when the turn rests, or before.
func (h *HTTP) send(ctx context.Context, t *agent.Turn, yield yield) {
	if !h.acquire(ctx, yield) {
		return
	}
	rep, err := h.sendHeld(ctx, t)
	h.answered(ctx, t, rep, err, yield)
}

// sendHeld sends a turn in a slot that its caller has taken, and gives the slot back: a poll needs none.
func (h *HTTP) sendHeld(ctx context.Context, t *agent.Turn) (agent.Report, error) {
	defer h.config.Slots.turns.release()
	return h.call(ctx, t, h.turn(t, false))
}

// answered yields the one answer to a turn. Where that is not the end, the task is polled.
func (h *HTTP) answered(ctx context.Context, t *agent.Turn, rep agent.Report, err error, yield yield) {
	if err != nil {
		h.failed(ctx, t, err, task.State.Terminal, yield)
		return
	}
	h.goesOn(ctx, t, rep, nil, yield)
}

// goesOn yields the first answer to a turn, and polls the task where that is not the end. pushed is what the agent pushes
// meanwhile, or nil.
func (h *HTTP) goesOn(ctx context.Context, t *agent.Turn, rep agent.Report, pushed <-chan []byte, yield yield) {
	f := follow{stamp: rep.Revision, pushed: pushed, patience: h.config.IdleTimeout, still: "the agent has changed nothing"}
	if f.early = early(t, &rep); f.early {
		if !yield(agent.Report{Delivery: agent.DeliveryAcknowledged}, nil) {
			return
		}
	} else if !yield(rep, nil) || rep.EndsTurn() {
		return
	}
	h.poll(ctx, named(t, &rep), f, yield)
}

// early reports whether an agent has answered a turn before it has acted on it: its task rests, and has not changed
// since the turn before.
func early(t *agent.Turn, rep *agent.Report) bool { return rep.RevisionDated && untouched(t, rep) }

// named returns t with the names that the agent has given the task.
func named(t *agent.Turn, rep *agent.Report) *agent.Turn {
	if rep.Ref == nil {
		return t
	}
	again := *t
	again.Ref = *rep.Ref
	return &again
}

// failed yields what the agent has stored of a turn that went wrong, in place of the error, if that is final:
// some agents answer a turn that fails with an error of their own.
func (h *HTTP) failed(ctx context.Context, t *agent.Turn, err error, final func(task.State) bool, yield yield) {
	if k := task.KindOf(err); (k == task.Internal || k == task.AgentTimeout) && ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, askTimeout)
		rep, bad := h.get(short, t)
		cancel()
		if bad == nil && final(rep.State) && !untouched(t, &rep) {
			yield(rep, nil)
			return
		}
	}
	yield(agent.Report{}, h.unknownMethod(err))
}

// unknownMethod turns an agent's "no such method" into what it is for a Leader, who has called another one.
func (h *HTTP) unknownMethod(err error) error {
	if task.KindOf(err) != task.MethodNotFound {
		return err
	}
	return Failed(task.InvalidAgentResponse, WrongDialect, err, "the agent does not speak %s; the operator must check its dialect", h.config.Codec.Name())
}

// mayStream reports whether a turn may be asked to be answered by a stream.
func (h *HTTP) mayStream(t *agent.Turn) bool {
	if m, ok := h.config.Codec.(translate.Mounted); ok {
		return m.Streams(t) && !h.streamless.Load()
	}
	return !h.unnamed(t) || !h.streamless.Load()
}

// cannotStream reports whether an error that answers a turn means that an agent has no streams where it was asked for
// one, and has done nothing. That there is no task of a name, where none was named, is what REST says of a place that
// does not exist.
func (h *HTTP) cannotStream(ctx context.Context, t *agent.Turn, err error) bool {
	_, mounted := h.config.Codec.(translate.Mounted)
	switch kind := task.KindOf(err); {
	case kind == task.MethodNotFound, kind == task.UnsupportedOperation:
		return true
	case kind == task.TaskNotFound:
		return h.unnamed(t)
	case mounted && errors.Is(err, errNoAgent):
		return true
	case mounted && errors.Is(err, errFault):
		missed, _ := h.missed(ctx, t)
		return missed
	}
	return false
}

// stream carries a turn out by a request that is answered with events, or by one without where the agent has no
// streams, which is remembered.
func (h *HTTP) stream(ctx context.Context, t *agent.Turn, yield yield) {
	u := h.events.url()
	if h.streamAt(ctx, t, h.turn(t, true), u, yield) {
		return
	}
	if other := h.events.other(u); other != nil && h.streamAt(ctx, t, h.turn(t, true), other, yield) {
		return
	}
	if h.unnamed(t) { // so that it is streams that are not supported, and nothing about the task
		h.streamless.Store(true)
	}
	_, mounted := h.config.Codec.(translate.Mounted)
	h.send(ctx, t, func(rep agent.Report, err error) bool {
		if err == nil && mounted && !h.events.known.Load() && !h.streamless.Swap(true) {
			h.log.LogAttrs(ctx, slog.LevelInfo, "the agent has no streams; its tasks are asked for")
		}
		return yield(rep, err)
	})
}

// streamAt carries a turn out by a stream from u. It reports false where the agent has none there, and has done nothing.
func (h *HTTP) streamAt(ctx context.Context, t *agent.Turn, e errand, u *url.URL, yield yield) bool {
	if !h.acquire(ctx, yield) {
		return true
	}
	release := sync.OnceFunc(h.config.Slots.turns.release)
	defer release()
	x, err := h.open(ctx, e, u, h.event)
	if err != nil {
		release()
		h.failed(ctx, t, err, task.State.Terminal, yield)
		return true
	}
	if !x.streams() {
		rep, err := x.reply(t.Known)
		x.close(err)
		release()
		if h.cannotStream(ctx, t, err) {
			return false
		}
		h.answered(ctx, t, rep, err, yield)
		return true
	}
	var seen, acted bool
	seen, acted, t, err = h.read(x, t, yield)
	x.close(err)
	release()
	if seen {
		h.events.here(u)
	}
	switch {
	case err == nil: // it rests, or nobody listens
	case ctx.Err() != nil:
		yield(agent.Report{}, ended(ctx))
	case errors.Is(err, errCut) && !seen && !h.unnamed(t):
		yield(agent.Report{}, task.Errorf(task.InvalidAgentResponse, "the connection to the agent broke before it said anything").
			WithCause(errors.Join(errPassing, errCut)))
	case errors.Is(err, errCut):
		h.log.LogAttrs(ctx, slog.LevelWarn, "the agent's stream was cut; going on by asking", slog.String("task", t.Ref.Task))
		h.resume(ctx, t, !acted, yield)
	case !seen && h.cannotStream(ctx, t, err):
		return false
	case seen: // so whatever rests now is the end of this turn, and not of the last one
		h.failed(ctx, t, err, task.State.Settled, yield)
	default:
		h.failed(ctx, t, err, task.State.Terminal, yield)
	}
	return true
}

var errCut = errors.New("upstream: the stream was cut")

// maxTogether is how many pieces that came in together are told together.
const maxTogether = 256

// read yields the events of a stream until the turn rests. Pieces of products that came in together are told
// together, so that a fast agent does not cost a write for each. seen reports whether there was any event, and acted
// whether there was one that shows that the agent has acted on the turn. The turn is returned with the names that the
// agent has given the task.
func (h *HTTP) read(x *exchange, t *agent.Turn, yield yield) (seen, acted bool, _ *agent.Turn, err error) {
	events, codec := x.events(), h.config.Codec.NewStream(t.Known)
	var together agent.Report
	var refused error // what the codec has against an event
	for {
		ev, err := events.Next()
		var rep agent.Report
		if err == nil {
			rep, err = codec.Event(ev.Name, ev.Data)
			refused = err
		}
		if err != nil && len(together.Chunks) > 0 && !yield(together, nil) {
			return seen, acted, t, nil
		}
		switch {
		case err == nil:
		case refused != nil:
			return seen, acted, t, refused
		case errors.Is(err, sseproxy.ErrTooLarge):
			return seen, acted, t, task.Errorf(task.InvalidAgentResponse, "an event of the agent is larger than %d bytes", h.config.MaxEvent)
		case context.Cause(x.ctx) == errSilent:
			return seen, acted, t, x.broken(err, "")
		default:
			return seen, acted, t, errCut
		}
		if empty(&rep) && len(together.Chunks) == 0 {
			continue
		}
		seen, t = true, named(t, &rep)
		if !acted && early(t, &rep) {
			if !yield(agent.Report{Delivery: agent.DeliveryAcknowledged}, nil) {
				return seen, acted, t, nil
			}
			continue
		}
		acted = true
		if len(together.Chunks) > 0 {
			rep.Chunks = append(together.Chunks, rep.Chunks...)
		}
		if together = (agent.Report{}); pieces(&rep) && len(rep.Chunks) < maxTogether && events.Ready() {
			together = rep
			continue
		}
		if !yield(rep, nil) {
			return seen, acted, t, nil
		}
		if rep.SelfResuming {
			x.quiet.Stop() // until the agent goes on, which may take as long as the task may await input
		}
		if rep.EndsTurn() {
			x.quiet.Reset(linger)
			io.Copy(io.Discard, io.LimitReader(x.res.Body, 1<<10))
			return seen, acted, t, nil
		}
	}
}

// pieces reports whether a report is of nothing but pieces of products.
func pieces(r *agent.Report) bool {
	return len(r.Chunks) > 0 && r.State == task.None && len(r.Items) == 0 && !r.Full && r.Ref == nil
}

func empty(r *agent.Report) bool {
	return r.State == task.None && r.NativeState == "" && len(r.Items) == 0 && len(r.Chunks) == 0 && !r.Full && r.Ref == nil
}
