// SPDX-License-Identifier: Apache-2.0

// Package gateway ties the rooms together: a front that takes callers' requests over HTTP, has a dialect
// read them and a guard check who sent them, and lets a Partner obey. It knows no Caddy.
package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Handler is one Partner's front. It is a plain http.Handler that may serve any number of requests at once.
type Handler struct {
	// Base is the path that the Partner is mounted under, without a slash at its end.
	Base string
	// Caller is the dialect that is served.
	Caller translate.Server
	// Guard decides who may call.
	Guard *identity.Guard
	// Partner returns who obeys. It may wait until there is one; an error means that there is none.
	Partner func(context.Context) (*partner.Partner, error)
	// Limits bound a request's body.
	Limits jsonrpc.Limits
	// BodyTimeout is how long a caller may take to send a request's body.
	BodyTimeout time.Duration
	// Streaming is how streams are served.
	Streaming Streaming

	Log *slog.Logger
}

// Serves reports whether a request is for the Partner, by its path alone.
func (h *Handler) Serves(r *http.Request) bool {
	path, ok := h.under(r.URL.Path)
	if !ok {
		return false
	}
	_, _, ok = h.Caller.Method(path)
	return ok
}

// under returns the part of a path that comes after the mount point, without slashes at its ends.
func (h *Handler) under(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, h.Base)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/"), true
}

// ServeHTTP answers a request. Whatever is wrong with it beyond HTTP itself is said in JSON-RPC, with status
// 200, as AIP wants it (v01.00 §5).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A stream may be open for days: it waits on a stack from which all that began it has gone.
	if s := h.serve(w, r); s != nil {
		s.run()
	}
}

// serve answers a request, or returns the stream that is to answer it.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) *stream {
	path, ok := h.under(r.URL.Path)
	var method string
	var any bool
	if ok {
		method, any, ok = h.Caller.Method(path)
	}
	switch {
	case !ok:
		http.NotFound(w, r)
		return nil
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send a JSON-RPC request by POST", http.StatusMethodNotAllowed)
		return nil
	}
	if h.Streaming.Drain.Err() != nil {
		// Another configuration has taken over. A connection that was opened at the moment of the change may not
		// have been told so, and would stay with this one.
		w.Header().Set("Connection", "close")
	}
	ctx, span := h.trace(r)
	buf := buffers.Get().(*buffer)
	defer buf.free() // a stream holds no buffer
	if err := buf.read(w, r, h.Limits.Bytes, h.BodyTimeout); err != nil {
		span.End()
		h.Log.Debug("a request was not received", "error", err)
		http.Error(w, "the request body did not arrive", http.StatusBadRequest)
		return nil
	}
	a := h.answer(ctx, span, r, buf.in, buf.out, method, any)
	if a.stream != nil {
		return &stream{h: h, w: w, ctx: ctx, span: span, id: bytes.Clone(a.id), events: a.stream, leader: a.leader, last: a.stream.After}
	}
	defer span.End()
	if a.body == nil {
		return nil // the caller has left
	}
	buf.out = a.body
	header := w.Header()
	header["Content-Type"] = jsonType
	header["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	if _, err := w.Write(a.body); err != nil {
		h.Log.Debug("an answer was not delivered", "error", err)
	}
	return nil
}

// answer is what a request is answered with: a body, a stream, or, where nobody waits for it any more, nothing.
type answer struct {
	body   []byte
	stream *partner.Stream
	id     jsonrpc.ID
	leader string // whose stream it is
}

var jsonType = []string{"application/json"}

// answer obeys a request. dst is where a body is appended.
func (h *Handler) answer(ctx context.Context, span trace.Span, r *http.Request, body, dst []byte, method string, any bool) answer {
	req, bad := jsonrpc.Parse(body, h.Limits)
	if bad != nil {
		return answer{body: h.refuse(dst, span, bad.ID, refusal(bad))}
	}
	a := answer{id: req.ID}
	call, err := h.admit(r, &req, &a, method, any)
	if err != nil {
		a.body = h.refuse(dst, span, req.ID, err)
		return a
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("aip.leader", a.leader), attribute.String("aip.task.id", call.Message.TaskID),
			attribute.String("aip.command", string(call.Message.Command)))
	}
	p, err := h.Partner(ctx)
	if err == nil && call.Stream {
		a.stream, err = h.open(ctx, p, a.leader, &call.Call)
	} else if err == nil {
		var t task.Task
		if t, err = p.Do(ctx, a.leader, &call.Call); err == nil {
			a.body = h.Caller.AppendTask(dst, req.ID, &t)
		}
	}
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return a
	}
	h.Log.Log(ctx, level(err), "a command was not carried out", "command", string(call.Message.Command),
		"task", call.Message.TaskID, "leader", a.leader, "error", err)
	a.body = h.refuse(dst, span, req.ID, err)
	return a
}

// admit reads a request and finds out whose it is.
func (h *Handler) admit(r *http.Request, req *jsonrpc.Request, a *answer, method string, any bool) (translate.Call, error) {
	if !any && req.Method != method {
		return translate.Call{}, task.Errorf(task.InvalidRequest,
			"this path takes the method %q; send others to their own path, or to the mount point", method).At("method")
	}
	peer, err := h.Guard.Peer(r.TLS)
	if err != nil {
		return translate.Call{}, err
	}
	call, err := h.Caller.Decode(req)
	if err != nil {
		return call, err
	}
	a.leader, err = h.Guard.Admit(peer, call.Message.SenderID)
	return call, err
}

// open counts a stream and lets the Partner begin it. After an error it is not counted.
func (h *Handler) open(ctx context.Context, p *partner.Partner, leader string, c *task.Call) (*partner.Stream, error) {
	if err := h.Streaming.Open.add(leader, &h.Streaming); err != nil {
		return nil, err
	}
	s, err := p.Stream(ctx, leader, c)
	if err != nil {
		h.Streaming.Open.remove(leader)
		return nil, err
	}
	return &s, nil
}

// refuse appends the response that says what went wrong.
func (h *Handler) refuse(dst []byte, span trace.Span, id jsonrpc.ID, err error) []byte {
	kind := task.KindOf(err)
	if span.IsRecording() {
		span.SetAttributes(attribute.String("error.type", kind.String()))
		span.SetStatus(codes.Error, kind.String())
	}
	if kind == task.AuthenticationRequired || kind == task.AuthorizationFailed {
		h.Log.Warn("a caller was turned away", "error", err)
	}
	return h.Caller.AppendError(dst, id, err)
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

// refusal gives the envelope's error a kind.
func refusal(bad *jsonrpc.Error) error {
	kind := task.InvalidRequest
	if bad.Code == jsonrpc.ParseError {
		kind = task.ParseError
	}
	err := task.Errorf(kind, "%s", bad.Detail).At(bad.Field)
	if kind == task.ParseError {
		err.With("offset", bad.Offset)
	}
	if bad.Limit != "" {
		err.With("limit", bad.Limit).With("max", bad.Max)
	}
	return err
}

// trace returns a context that belongs to the caller's trace. Where a tracer is at work (Caddy's tracing
// directive), the call is a span of its own; where none is, the caller's traceparent is passed on unchanged.
func (h *Handler) trace(r *http.Request) (context.Context, trace.Span) {
	ctx := r.Context()
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		if r.Header["Traceparent"] == nil {
			return ctx, parent
		}
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
		return ctx, trace.SpanFromContext(ctx)
	}
	if !parent.IsRecording() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return parent.TracerProvider().Tracer("github.com/aip-gateway/aip-gateway").Start(ctx, "aip.call",
		trace.WithAttributes(attribute.String("rpc.system", "jsonrpc")))
}
