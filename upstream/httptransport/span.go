// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"context"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// span is the client span of one request; the zero span is that of a request that is not traced.
type span struct{ trace.Span }

// startSpan starts the span of a request, and returns the header with the trace of ctx in it, nil where there is none.
// The given header is not changed. A request that is no JSON-RPC is named by its method of HTTP, as its path
// would name a task.
func (t *Transport) startSpan(ctx context.Context, method string, body []byte, header http.Header) (http.Header, span) {
	var s span
	if tracing.Enabled(ctx, nil) {
		attributes := []attribute.KeyValue{
			attribute.String("http.request.method", method),
			attribute.String("server.address", t.url.Hostname()),
		}
		if port, err := strconv.Atoi(t.url.Port()); err == nil {
			attributes = append(attributes, attribute.Int("server.port", port))
		}
		name := method
		if _, rest := t.config.Codec.(translate.Binder); !rest {
			name = gjson.GetBytes(body, "method").Str
			attributes = append(attributes, attribute.String("rpc.system", "jsonrpc"),
				attribute.String("rpc.jsonrpc.version", "2.0"), attribute.String("rpc.method", name))
		}
		ctx, s.Span = tracing.Start(ctx, nil, trace.SpanKindClient, name, attributes...)
	}
	if !trace.SpanContextFromContext(ctx).IsValid() && baggage.FromContext(ctx).Len() == 0 {
		return nil, s
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
