// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Answer is the answer to a request: a reply, a stream, or both. It is neither if the caller has left.
type Answer struct {
	// Dialect is the dialect of the request.
	Dialect translate.Server
	// Reply is a whole message; nil for none. It is valid until the Request is released. If there is a stream as well,
	// the reply is sent first.
	Reply []byte
	// Err is the error reported by Reply; nil for a result.
	Err error
	// Refused is what is known of a request answered by an error, but for the forms that the caller accepts: the front
	// knows these. It is valid as long as Reply is.
	Refused translate.Refused
	// Stream is nil for none. The front runs it and then closes it. It may release the Request before.
	Stream *Stream
	// Summary is for a log of requests. The summary of a stream follows with its Outcome.
	Summary Summary
}

// Dispatch answers a matched request. peer is the caller, as the front knows it. An error is an Answer as well, in the
// caller's dialect. ctx must end when the caller leaves, and its end ends a stream, too. It carries the caller's trace,
// if there is one.
func (g *Gateway) Dispatch(ctx context.Context, peer identity.Peer, r *Request) Answer {
	x := g.begin(ctx, peer, r)
	begun := time.Now()
	a := x.answer()
	if a.Summary = x.summary(a.Err); a.Dialect != nil {
		x.count(a.Err, time.Since(begun))
	} else {
		a.Summary.Error = CallerLeft
	}
	if a.Err == nil && x.use.Any() { // a stream has moved it
		_ = x.use.Send(int64(len(a.Reply))) // the call is carried out already
	}
	if a.Stream == nil {
		x.span.End()
		r.memory.Take(int64(len(a.Reply)))
	}
	x.use.End()
	*x = exchange{} // nothing but the reply is kept
	return a
}

// Do executes a call decoded by a front, and answers with data, for a front with an encoding of its own or without one.
// peer and ctx are those of Dispatch. Only two things of the Request count: its knowledge of the caller, and its memory
// until it is released.
func (g *Gateway) Do(ctx context.Context, peer identity.Peer, r *Request, c *Call) (Result, error) {
	r.call = c
	x, begun := g.begin(ctx, peer, r), time.Now()
	defer x.span.End()
	err := x.receive()
	if err != nil {
		x.note(err)
	} else {
		x.begun()
		if err = x.execute(); err != nil && !x.hasLeft(err) {
			x.failed(err)
			x.note(err)
		}
	}
	x.count(err, time.Since(begun))
	x.use.End()
	result := x.result
	*x = exchange{}
	return result, err
}

// Admit decides about a call answered by the front itself, and counts it as Dispatch does, but nothing is executed.
// peer, ctx and the Request are those of Do.
func (g *Gateway) Admit(ctx context.Context, peer identity.Peer, r *Request, c *Call) error {
	r.call = c
	x, begun := g.begin(ctx, peer, r), time.Now()
	defer x.span.End()
	err := x.receive()
	if err != nil {
		x.note(err)
	}
	x.count(err, time.Since(begun))
	x.use.End()
	*x = exchange{}
	return err
}

// Refuse answers a request without its body, with an error of a kind, such as those of Hold. The form of the answer
// depends on the begin of the body: see BeginOfBody.
func (g *Gateway) Refuse(ctx context.Context, peer identity.Peer, r *Request, err error) Answer {
	x := g.begin(ctx, peer, r)
	defer x.span.End()
	if r.Version != "" && !x.route.Unenveloped {
		x.match = r.choose(&translate.Request{Version: r.Version})
	}
	x.chooseUnread()
	x.count(err, 0)
	a := x.refuse(err)
	a.Summary = x.summary(err)
	return a
}

// begin begins an exchange, with a span of its own if there is a tracer.
func (g *Gateway) begin(ctx context.Context, peer identity.Peer, r *Request) *exchange {
	x := &r.exchange
	*x = exchange{g: g, in: r, peer: peer}
	if r.call != nil {
		x.req.ID, x.call, x.decoded = r.id, *r.call, true
	}
	if len(r.matches) > 0 {
		x.match = r.matches[0]
		x.call.Dialect = x.dialect.Name()
	}
	ctx = tracing.Received(ctx)
	if x.dialect == nil || x.route.Unenveloped {
		x.ctx, x.span = tracing.Start(ctx, g.config.Tracing, trace.SpanKindInternal, "aip.call")
	} else {
		x.ctx, x.span = tracing.Start(ctx, g.config.Tracing, trace.SpanKindInternal, "aip.call",
			attribute.String("rpc.system", "jsonrpc"))
	}
	r.reply = replies.Get()
	return x
}

// answer decodes the request, finds its Leader, and executes it.
func (x *exchange) answer() Answer {
	if err := x.receive(); err != nil {
		return x.refuse(err)
	}
	x.begun()
	a, err := x.respond()
	switch {
	case err == nil:
		return a
	case x.hasLeft(err):
		return Answer{}
	}
	x.failed(err)
	return x.refuse(err)
}

// begun is called when the call is admitted, and is about to be executed.
func (x *exchange) begun() {
	x.releaseBody()
	if x.span.IsRecording() {
		m := &x.call.Message
		x.span.SetAttributes(attribute.String("aip.leader", x.call.Leader), attribute.String("aip.task.id", m.TaskID),
			attribute.String("aip.command", string(m.Command)), attribute.String("aip.dialect", x.call.Dialect))
	}
}

// hasLeft reports whether an error is due to the caller's leaving.
func (x *exchange) hasLeft(err error) bool { return x.ctx.Err() != nil && errors.Is(err, x.ctx.Err()) }

// failed logs the failure of an admitted call.
func (x *exchange) failed(err error) {
	m := &x.call.Message
	x.g.config.Log.Log(x.ctx, level(err), "a command failed", "command", string(m.Command), "task", m.TaskID,
		"leader", x.call.Leader, "address", x.in.Address, "error", err)
}

// reply returns the answer with a body appended to the buffer of the reply.
func (x *exchange) reply(body []byte) Answer {
	*x.in.reply = body
	return Answer{Dialect: x.dialect, Reply: body}
}

// note notes an error in the span of the call, and logs a caller with too little proof.
func (x *exchange) note(err error) {
	kind := task.KindOf(err)
	if x.span.IsRecording() {
		x.span.SetAttributes(attribute.String("error.type", kind.String()))
		x.span.SetStatus(codes.Error, kind.String())
	}
	switch kind {
	case task.AuthenticationRequired, task.AuthorizationFailed, task.AccessTokenInvalid:
		x.logRefused(err)
	}
}

// logRefused logs a caller with too little proof. Strangers can call as often as they like, so few lines are about
// them.
func (x *exchange) logRefused(err error) {
	may, unlogged := true, 0
	if !x.peer.Verified() {
		may, unlogged = x.g.config.Process.strangers.Log()
	}
	if !may {
		return
	}
	// What to do: `advice` says it; an unknown address needs nothing.
	x.g.config.Log.WarnContext(x.ctx, "a caller was refused", "address", x.in.Address, "certificate", x.peer.CommonName,
		"error", err, "unlogged", unlogged)
}

// refuse returns the answer for an error.
func (x *exchange) refuse(err error) Answer {
	x.note(err)
	write := x.dialect.AppendError
	if d, ok := x.dialect.(translate.GroupServer); ok && d.IsInvitation(cmp.Or(x.req.Method, x.route.Method)) {
		write = d.AppendInvitationError
	}
	a := x.reply(write((*x.in.reply)[:0], x.req.ID, err))
	a.Err, a.Refused = err, translate.Refused{Method: x.method(), Stream: x.call.Stream}
	return a
}

// level is the level for logging an error: high if the operator must act, low if the caller is wrong.
func level(err error) slog.Level {
	switch task.KindOf(err) {
	case task.Internal:
		return slog.LevelError
	case task.InvalidAgentResponse, task.AgentUnavailable, task.AgentTimeout, task.LimitExceeded:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
