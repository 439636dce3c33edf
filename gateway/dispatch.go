// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Answer is what a request is answered with: a reply, a stream, or both. The zero Answer says that the caller has left.
type Answer struct {
	// Dialect is the one that the request turned out to be of.
	Dialect translate.Server
	// Reply is a whole message; nil for none. It belongs to the Request, and is valid until that is released. Beside a
	// stream, it is sent before the stream is run.
	Reply []byte
	// Err is why the request is refused, if Reply says so.
	Err error
	// Stream is what follows; nil for nothing. The front runs it and closes it, and may release the Request before.
	Stream *Stream
}

// Dispatch carries out a request that has been matched, for a peer as its front has made it. Whatever is wrong with
// the request is said by the Answer, in the caller's dialect. ctx ends when the caller leaves, and a stream with it. It
// carries the caller's trace, if there is one.
func (g *Gateway) Dispatch(ctx context.Context, peer identity.Peer, r *Request) Answer {
	x := g.begin(ctx, peer, r)
	a := x.answer()
	if a.Stream == nil {
		x.span.End()
		r.memory.Take(int64(len(a.Reply))) // nothing but the reply is kept
	}
	return a
}

// Refuse answers a request that its front could not receive. The error has a kind, as those of Hold do.
func (g *Gateway) Refuse(ctx context.Context, peer identity.Peer, r *Request, err error) Answer {
	x := g.begin(ctx, peer, r)
	defer x.span.End()
	return x.refuse(err)
}

// begin begins the exchange of a request and its answer. Where a tracer is at work, it is a span of its own.
func (g *Gateway) begin(ctx context.Context, peer identity.Peer, r *Request) *exchange {
	x := &exchange{g: g, in: r, peer: peer, match: r.matches[0]}
	if x.route.Unenveloped {
		x.ctx, x.span = tracing.Start(ctx, g.config.Tracing, trace.SpanKindInternal, "aip.call")
	} else {
		x.ctx, x.span = tracing.Start(ctx, g.config.Tracing, trace.SpanKindInternal, "aip.call",
			attribute.String("rpc.system", "jsonrpc"))
	}
	r.reply = replies.Get()
	return x
}

// answer parses the request, finds its Leader, and has it carried out.
func (x *exchange) answer() Answer {
	if err := x.parse(); err != nil {
		return x.refuse(err)
	}
	x.match = x.in.choose(&x.req)
	if err := x.admit(); err != nil {
		return x.refuse(err)
	}
	x.releaseBody()
	m := &x.call.Message
	if x.span.IsRecording() {
		x.span.SetAttributes(attribute.String("aip.leader", x.leader), attribute.String("aip.task.id", m.TaskID),
			attribute.String("aip.command", string(m.Command)), attribute.String("aip.dialect", x.dialect.Name()))
	}
	a, err := x.execute()
	switch {
	case err == nil:
		return a
	case x.ctx.Err() != nil && errors.Is(err, x.ctx.Err()):
		return Answer{}
	}
	x.g.config.Log.Log(x.ctx, level(err), "a command was not carried out", "command", string(m.Command), "task", m.TaskID,
		"leader", x.leader, "error", err)
	return x.refuse(err)
}

// reply returns the answer that a function appends.
func (x *exchange) reply(body []byte) Answer {
	*x.in.reply = body
	return Answer{Dialect: x.dialect, Reply: body}
}

// refuse returns the answer that says what went wrong.
func (x *exchange) refuse(err error) Answer {
	kind := task.KindOf(err)
	if x.span.IsRecording() {
		x.span.SetAttributes(attribute.String("error.type", kind.String()))
		x.span.SetStatus(codes.Error, kind.String())
	}
	if kind == task.AuthenticationRequired || kind == task.AuthorizationFailed {
		x.g.config.Log.Warn("a caller was turned away", "address", x.in.Address, "error", err)
	}
	a := x.reply(x.dialect.AppendError((*x.in.reply)[:0], x.req.ID, err))
	a.Err = err
	return a
}

// level is how loudly an error is logged: loud where the operator must act, quiet where the caller erred.
func level(err error) slog.Level {
	switch task.KindOf(err) {
	case task.Internal:
		return slog.LevelError
	case task.InvalidAgentResponse, task.AgentUnavailable, task.AgentTimeout, task.LimitExceeded:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}
