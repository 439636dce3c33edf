// SPDX-License-Identifier: Apache-2.0

// Package tracing starts the gateway's spans. A span belongs to the tracer of its parent, so a call is traced exactly
// by the tracer of its caller. A span without a recorded parent, for example of a turn resumed after a restart or of
// the delivery of a webhook, belongs to the gateway's own tracer, if it has one.
package tracing

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const scope = "github.com/aip-gateway/aip-gateway"

// Enabled reports whether a span of Start may be recorded.
func Enabled(ctx context.Context, own trace.TracerProvider) bool {
	return own != nil || trace.SpanFromContext(ctx).IsRecording()
}

// Start starts a span of a kind, and returns a context with it. The tracer is the one of the span in ctx if that span
// is recorded, and otherwise one of own; own may be nil. Without a tracer it returns ctx itself and a span without
// records, and allocates nothing. The caller must end the span.
func Start(
	ctx context.Context, own trace.TracerProvider, kind trace.SpanKind, name string, attributes ...attribute.KeyValue,
) (context.Context, trace.Span) {
	provider := own
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		provider = parent.TracerProvider()
	}
	if provider == nil {
		return ctx, noop.Span{}
	}
	// A copy, so that the arguments of an untraced call stay on its stack.
	return provider.Tracer(scope).Start(ctx, name,
		trace.WithSpanKind(kind), trace.WithAttributes(slices.Clone(attributes)...))
}
