// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/task"
)

// ClientSpan is the span of a request over HTTP to another process; the zero ClientSpan is for an untraced request.
type ClientSpan struct{ span trace.Span }

// StartClient starts the span of a request to a URL. It is to be called only if Enabled is true.
func StartClient(
	ctx context.Context,
	name string,
	to *url.URL,
	attributes ...attribute.KeyValue,
) (context.Context, ClientSpan) {
	attributes = append(attributes, attribute.String("server.address", to.Hostname()))
	if port, err := strconv.Atoi(to.Port()); err == nil {
		attributes = append(attributes, attribute.Int("server.port", port))
	}
	ctx, span := Start(ctx, nil, trace.SpanKindClient, name, attributes...)
	return ctx, ClientSpan{span}
}

// Status notes the status of the answer.
func (s ClientSpan) Status(code int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int("http.response.status_code", code))
	}
}

// End ends the span. err is the error of the request, nil for none.
func (s ClientSpan) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		kind := task.KindOf(err).String()
		s.span.SetAttributes(attribute.String("error.type", kind))
		s.span.SetStatus(codes.Error, kind)
	}
	s.span.End()
}

// Inject returns a header with the trace and the baggage of ctx in addition, nil if there is none. The given header is
// not changed.
func Inject(ctx context.Context, header http.Header) http.Header {
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return nil
	}
	if header = header.Clone(); header == nil {
		header = make(http.Header)
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	propagation.Baggage{}.Inject(ctx, propagation.HeaderCarrier(header))
	return header
}
