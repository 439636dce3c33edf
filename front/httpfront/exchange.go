// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// exchange is an HTTP request under way. Exchanges are pooled.
type exchange struct {
	front   *Front
	request gateway.Request
	summary *gateway.Summary // of the host
	preview *Preview         // nil for none
	ctx     context.Context
	peer    identity.Peer

	received int // number of bytes of the body read
}

// ServeHTTP answers the request.
func (e *exchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	front, summary := e.front, e.summary
	if e.request.GRPC {
		e.serveGRPC(w, r)
		return
	}
	// A stream may be open for days: it is run after the return of serve, to have a small stack.
	if stream, reply := e.serve(w, r); stream != nil {
		*summary = front.stream(w, r, stream, reply)
	}
}

// serve answers the request, or returns the stream of its answer, with the reply to send before the stream.
func (e *exchange) serve(w http.ResponseWriter, r *http.Request) (stream *gateway.Stream, reply []byte) {
	defer e.release()
	f := e.front
	if allow := e.request.Allow(); allow != "" {
		w.Header().Set("Allow", allow)
		http.Error(w, "send a request by "+allow, http.StatusMethodNotAllowed)
		return nil, nil
	}
	if f.gateway.Draining() && r.ProtoMajor < 3 {
		// Another configuration has replaced this one. A connection opened during the change may have missed it, and would
		// stay with this one. HTTP/3 has no such field, and closes its connections itself.
		w.Header().Set("Connection", "close")
	}
	e.ctx, e.peer = traced(r), e.authenticate(r)
	describe(&e.request, r)
	e.request.Stripped = f.stripped(r)
	e.resume()
	e.request.Body = gateway.NewBody()
	var a gateway.Answer
	last, err := e.receive(w, r)
	if last {
		w.Header().Set("Connection", "close")
	}
	if err == nil {
		e.received = len(*e.request.Body)
		a = f.gateway.Dispatch(e.ctx, e.peer, &e.request)
	} else if _, refused := errors.AsType[*task.Error](err); refused {
		a = f.gateway.Refuse(e.ctx, e.peer, &e.request, err)
	} else {
		f.config.Log.DebugContext(e.ctx, "a request was not received", "error", err)
		http.Error(w, "the request body did not arrive", http.StatusBadRequest)
		return nil, nil
	}
	*e.summary = a.Summary
	switch {
	case a.Stream != nil:
		return a.Stream, bytes.Clone(a.Reply)
	case a.Reply == nil: // the caller has left
	default:
		if err := e.reply(w, r, &a); err != nil {
			f.config.Log.DebugContext(e.ctx, "an answer was not delivered", "error", err)
		}
	}
	return nil, nil
}

// ErrJudgedOtherwise is the cause of an error for a caller judged by a Previewer by other proofs than the Front's.
var ErrJudgedOtherwise = errors.New("the previewer and the front have different proofs")

// authenticate returns the sender of the request. Findings of a preview are not found out again.
func (e *exchange) authenticate(r *http.Request) identity.Peer {
	var peer identity.Peer
	var err error
	switch {
	case e.preview == nil || e.preview.previewer.Authenticate == nil:
		peer, err = e.front.config.Authenticate(r)
	case e.preview.previewer.Proofs != e.front.config.Proofs:
		err = task.Errorf(task.AuthenticationRequired, "What proves who you are was judged otherwise before. "+
			"The operator of this gateway must mend that.").WithCause(ErrJudgedOtherwise)
	default:
		peer, err = e.preview.Peer()
	}
	if err != nil {
		return identity.Refused(err)
	}
	return peer
}

// resume takes over from the preview of the request, if there is one.
func (e *exchange) resume() {
	if e.preview != nil {
		e.request.Asked = e.preview.pass()
	}
}

// release gives the exchange back to the pool.
func (e *exchange) release() {
	e.request.Release()
	*e = exchange{request: e.request}
	exchanges.Put(e)
}

// describe fills in a request from the header and the URL.
func describe(q *gateway.Request, r *http.Request) {
	q.Host, q.TLS, q.Address, q.Transport = r.Host, r.TLS != nil, r.RemoteAddr, r.Proto
	if v := r.Header["Content-Type"]; len(v) > 0 {
		media, _, _ := strings.Cut(v[0], ";")
		q.Content = strings.ToLower(strings.TrimSpace(media))
	}
	q.Authorization = r.Header["Authorization"]
	if v := r.Header["A2a-Version"]; len(v) > 0 {
		q.Version = strings.TrimSpace(v[0])
	}
	q.Activated = r.Header["A2a-Extensions"]
	if v := r.Header["X-A2a-Extensions"]; v != nil { // its name before 1.0
		q.Activated = append(slices.Clip(q.Activated), v...)
	}
	if r.URL.RawQuery != "" {
		q.Query = r.URL.Query()
		if q.Version == "" {
			q.Version = q.Query.Get("A2A-Version")
		}
	}
	last := q.Query.Get("lastEventId") // of an EventSource made from a request, which cannot set the field
	if v := r.Header["Last-Event-Id"]; len(v) > 0 && v[0] != "" {
		last = v[0]
	}
	if last != "" {
		after, err := strconv.ParseUint(last, 10, 63)
		q.After, q.Resumes = after, err == nil
	}
}

// traced returns a context with the trace of the caller's traceparent, unless the server has begun a span.
func traced(r *http.Request) context.Context {
	ctx := r.Context()
	if r.Header["Traceparent"] != nil && !trace.SpanContextFromContext(ctx).IsValid() {
		return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	return ctx
}

var (
	jsonType  = []string{"application/json"}
	eventType = []string{"text/event-stream"}

	// retryAfter is the number of seconds after which a caller may retry while the store is unavailable. The store retries
	// within 30 s, and mostly at once.
	retryAfter = []string{"5"}
)

// reply sends a reply without a stream.
func (e *exchange) reply(w http.ResponseWriter, r *http.Request, a *gateway.Answer) error {
	header, body, status := w.Header(), a.Reply, http.StatusOK
	header["Content-Type"] = jsonType
	if a.Err == nil {
		if t, ok := a.Dialect.(translate.ContentTyper); ok {
			header["Content-Type"] = t.ContentType()
		}
	} else {
		if s, ok := a.Dialect.(translate.Statuser); ok {
			status = s.Status(a.Err)
		}
		if status == http.StatusUnauthorized {
			header["Www-Authenticate"], status = e.front.challenge(a)
		}
		s, ok := a.Dialect.(translate.ErrorStreamer)
		a.Refused.Events, a.Refused.OnlyEvents = acceptsEvents(r)
		if ok && status == http.StatusOK && s.StreamsErrors(&a.Refused) {
			header["Content-Type"] = eventType
			body = append(append([]byte("data: "), body...), "\n\n"...)
		}
	}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	switch {
	case status == http.StatusServiceUnavailable, task.KindOf(a.Err) == task.StoreUnavailable:
		header["Retry-After"] = retryAfter
	case status == http.StatusTooManyRequests:
		if e, ok := errors.AsType[*task.Error](a.Err); ok && e.RetryAfter() > 0 {
			header["Retry-After"] = []string{strconv.FormatInt(e.RetryAfter(), 10)}
		}
	}
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	if err := e.front.write(w, r, body, &e.request); err != nil {
		return err
	}
	return e.front.loop(w, r, e.received)
}

// acceptsEvents reports whether the caller accepts a stream, and whether it accepts nothing else.
func acceptsEvents(r *http.Request) (accepts, only bool) {
	accept := strings.Join(r.Header["Accept"], ",")
	accepts = strings.Contains(accept, "text/event-stream")
	return accepts, accepts && !strings.Contains(accept, "json") && !strings.Contains(accept, "*/*")
}
