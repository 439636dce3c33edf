// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
)

// span is the client span of one request; the zero span is that of a request that nobody traces.
type span struct{ trace.Span }

// startSpan starts a span where the caller's is recorded, and returns the header with the trace of ctx in it.
// The given header is not changed.
func startSpan(ctx context.Context, u *url.URL, body []byte, header http.Header) (http.Header, span) {
	var s span
	caller := trace.SpanContextFromContext(ctx)
	if tracing.Enabled(ctx, nil) {
		method := gjson.GetBytes(body, "method").Str
		ctx, s.Span = tracing.Start(ctx, nil, trace.SpanKindClient, method,
			attribute.String("rpc.system", "jsonrpc"),
			attribute.String("rpc.jsonrpc.version", "2.0"),
			attribute.String("rpc.method", method),
			attribute.String("http.request.method", http.MethodPost),
			attribute.String("server.address", u.Hostname()),
		)
		if port, err := strconv.Atoi(u.Port()); err == nil {
			s.SetAttributes(attribute.Int("server.port", port))
		}
	}
	if !caller.IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return header, s
	}
	header = header.Clone()
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
