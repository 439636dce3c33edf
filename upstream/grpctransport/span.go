// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
)

// span is the client span of one call; the zero span is that of a call that is not traced.
type span struct{ trace.Span }

// startSpan starts the span of a call, and returns the header fields with the trace of ctx; nil where there is none.
func (r *route) startSpan(ctx context.Context) (http.Header, span) {
	var s span
	if tracing.Enabled(ctx, nil) {
		u, name := r.transport.url, strings.TrimPrefix(r.method, "/")
		service, method, _ := strings.Cut(name, "/")
		attributes := []attribute.KeyValue{attribute.String("rpc.system", "grpc"),
			attribute.String("rpc.service", service), attribute.String("rpc.method", method),
			attribute.String("server.address", u.Hostname())}
		if port, err := strconv.Atoi(u.Port()); err == nil {
			attributes = append(attributes, attribute.Int("server.port", port))
		}
		ctx, s.Span = tracing.Start(ctx, nil, trace.SpanKindClient, name, attributes...)
	}
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return nil, s
	}
	header := make(http.Header)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	propagation.Baggage{}.Inject(ctx, propagation.HeaderCarrier(header))
	return header, s
}

func (s span) status(code int) {
	if s.Span != nil {
		s.SetAttributes(attribute.Int("http.response.status_code", code))
	}
}

func (s span) end(err error) {
	if s.Span == nil {
		return
	}
	if err != nil {
		kind := task.KindOf(err).String()
		s.SetAttributes(attribute.String("error.type", kind))
		s.SetStatus(codes.Error, kind)
	}
	s.End()
}
