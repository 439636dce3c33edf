// SPDX-License-Identifier: Apache-2.0

// Package gateway ties the rooms together: a front that takes callers' requests over HTTP, has a dialect
// read them and a guard check who sent them, and lets a Partner obey. It knows no Caddy.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Handler is one Partner's front. It is a plain http.Handler that may serve any number of requests at once.
type Handler struct {
	// Base is the path that the Partner is mounted under, without a slash at its end.
	Base string
	// PublicURL is the public URL of the mount point. Empty means what the caller wrote.
	PublicURL string
	// Documents are what anybody may get, by path under the mount point.
	Documents map[string]Document
	// ExtendedCard makes the card that only callers get, in a dialect. A nil body says that there is none.
	ExtendedCard func(ctx context.Context, base, dialect string) (body []byte, err error)
	// Callers are the dialects that are served. Where a path is open to several, the first that speaks the
	// request has it.
	Callers []translate.Server
	// Confirm says that Callers were made for a Partner whose tasks wait to be confirmed. Webhooks remember it
	// (task.Webhook.Confirm), because their notifications must show tasks in the same way.
	Confirm bool
	// Guard decides who may call.
	Guard *identity.Guard
	// Partner returns who obeys. It may wait until there is one; an error means that there is none.
	Partner func(context.Context) (*partner.Partner, error)
	// Webhooks returns who tells webhooks. It is called after Partner has returned.
	Webhooks func() *notify.Engine
	// Blocking is how long a call that waits until its task rests may take. Then it is answered with the task as it is.
	Blocking time.Duration
	// Limits bound a request's body.
	Limits jsonrpc.Limits
	// BodyTimeout is how long a caller may take to send a request's body.
	BodyTimeout time.Duration
	// Tracing makes the spans of calls that come without a recorded span; nil makes none.
	Tracing trace.TracerProvider
	// Memory bounds what callers hold of it by their requests, answers and streams. Zero means no bound.
	Memory quota.Budget
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
	if h.Documents[path] != nil {
		return true
	}
	for _, s := range h.Callers {
		if _, ok := s.Route(r.Method, path); ok {
			return true
		}
	}
	return false
}

// Under reports whether a request is for the mount point or for a path under it, whether that is served or not.
func (h *Handler) Under(r *http.Request) bool {
	_, ok := h.under(r.URL.Path)
	return ok
}

// NotFound answers a request for a path that is not served. mount is the path of the mount point, as callers know it.
func (h *Handler) NotFound(w http.ResponseWriter, mount string) {
	callers := make([]string, len(h.Callers))
	for i, s := range h.Callers {
		callers[i] = s.Name()
	}
	says := fmt.Sprintf("nothing is served at this path; the Partner is mounted at %s/ and takes POST requests there (%s)",
		mount, strings.Join(callers, ", "))
	if len(h.Documents) > 0 {
		cards := slices.Sorted(maps.Keys(h.Documents))
		says += "; by GET it shows " + strings.Join(cards, ", ") + " under it"
	}
	http.Error(w, says, http.StatusNotFound)
}

// under returns the part of a path that comes after the mount point, without slashes at its ends.
func (h *Handler) under(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, h.Base)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimSuffix(strings.TrimPrefix(rest, "/"), "/"), true
}

// ServeHTTP answers a request. Whatever is wrong with it beyond HTTP itself is said in the caller's dialect; in
// JSON-RPC with status 200, as AIP wants it (v01.00 §5).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A stream may be open for days: it waits on a stack from which all that began it has gone.
	if s := h.serve(w, r); s != nil {
		s.run()
	}
}

// serve answers a request, or returns the stream that is to answer it.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) *stream {
	c := conversation{h: h, r: r}
	var ok bool
	if c.path, ok = h.under(r.URL.Path); ok {
		if h.document(w, r, c.path) {
			return nil
		}
		ok = c.route()
	}
	switch {
	case !ok:
		h.NotFound(w, h.Base)
		return nil
	case c.at.Allow != "":
		w.Header().Set("Allow", c.at.Allow)
		http.Error(w, "send a request by "+c.at.Allow, http.StatusMethodNotAllowed)
		return nil
	}
	if h.Streaming.Drain.Err() != nil && r.ProtoMajor < 3 {
		// Another configuration has taken over. A connection that was opened at the moment of the change may not
		// have been told so, and would stay with this one. HTTP/3 has no such field, and tells by itself.
		w.Header().Set("Connection", "close")
	}
	c.ctx, c.span = h.trace(r)
	buf := newBuffer()
	defer buf.free() // a stream holds no buffer
	defer c.memory.Release()
	var a answer
	switch err := buf.read(w, r, h.Limits.Bytes, h.BodyTimeout, c.holdBody); {
	case task.KindOf(err) == task.LimitExceeded:
		// The rest of the body is not waited for.
		w.Header().Set("Connection", "close")
		a = c.refuse(*buf.out, err)
	case err != nil:
		c.span.End()
		h.Log.Debug("a request was not received", "error", err)
		http.Error(w, "the request body did not arrive", http.StatusBadRequest)
		return nil
	default:
		a = c.answer(&buf)
	}
	if a.stream != nil {
		return c.stream(w, &a)
	}
	defer c.span.End()
	if a.body == nil {
		return nil // the caller has left
	}
	*buf.out = a.body
	c.sent(len(a.body))
	header := w.Header()
	header["Content-Type"] = jsonType
	switch {
	case a.event:
		header["Content-Type"] = eventType
	case a.media != nil:
		header["Content-Type"] = a.media
	}
	header["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	if a.status == http.StatusServiceUnavailable {
		header["Retry-After"] = retryAfter
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
	}
	if err := c.write(w, a.body); err != nil {
		h.Log.Debug("an answer was not delivered", "error", err)
	}
	return nil
}

// write writes an answer. From HTTP/2 on, a caller may leave no room even for a small one. There a deadline is that of one
// stream, and it stays: the last of an answer is sent when its handler has returned.
func (c *conversation) write(w http.ResponseWriter, body []byte) error {
	timeout := c.h.Streaming.WriteTimeout
	if c.r.ProtoMajor < 2 {
		return writeAnswer(c.ctx, w, body, timeout)
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(timeout))
	err := writeAnswer(c.ctx, w, body, timeout)
	if len(body) > pieceSize { // those of the pieces were taken back
		_ = control.SetWriteDeadline(time.Now().Add(timeout))
	}
	return err
}

var (
	jsonType  = []string{"application/json"}
	eventType = []string{"text/event-stream"}

	// retryAfter is when a caller may try again whose call the store could not take, in seconds: the store tries
	// again by itself within 30 s, and mostly at once.
	retryAfter = []string{"5"}
)

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
	err := task.Errorf(kind, "%s", bad.Detail).WithField(bad.Field)
	if kind == task.ParseError {
		err.WithData("offset", bad.Offset)
	}
	if bad.Limit != "" {
		err.WithData("limit", bad.Limit).WithData("max", bad.Max)
	}
	return err
}

// trace returns a context that belongs to the caller's trace. Where a tracer is at work (Caddy's tracing directive, or
// Handler.Tracing), the call is a span of its own; where none is, the caller's traceparent is passed on unchanged.
func (h *Handler) trace(r *http.Request) (context.Context, trace.Span) {
	ctx := r.Context()
	if !trace.SpanContextFromContext(ctx).IsValid() && r.Header["Traceparent"] != nil {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	return tracing.Start(ctx, h.Tracing, trace.SpanKindInternal, "aip.call", attribute.String("rpc.system", "jsonrpc"))
}
