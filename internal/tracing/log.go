// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// IDKey is the field of a log line with the id of the trace, in hexadecimal digits.
const IDKey = "trace_id"

// AddID adds the trace of a context to a log line logged with it, if there is one. A handler calls it.
func AddID(ctx context.Context, r *slog.Record) {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		r.AddAttrs(slog.String(IDKey, c.TraceID().String()))
	}
}

// IDOf returns the id of the trace in a traceparent, in hexadecimal digits; empty for none.
func IDOf(traceparent string) string {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}
