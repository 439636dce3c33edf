// SPDX-License-Identifier: Apache-2.0

// Package tracing starts the gateway's spans. A span belongs to the tracer of the span that it is a part of, so that a
// call is traced exactly where its caller is. What has no recorded parent, such as a turn that is resumed after a
// restart or the delivery of a webhook, belongs to the gateway's own tracer, if it has one.
package tracing

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const scope = "github.com/aip-gateway/aip-gateway"

// Enabled reports whether a span that Start starts may be recorded.
func Enabled(ctx context.Context, own trace.TracerProvider) bool {
	return own != nil || trace.SpanFromContext(ctx).IsRecording()
}

// Start starts a span of a kind, and returns a context that holds it. The tracer is that of the span in ctx where that
// is recorded, and otherwise one of own, which may be nil. Without a tracer it returns ctx itself and a span that
// records nothing, and allocates nothing. The caller must end the span.
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
	// A copy, so that the arguments of a call that nothing traces stay on its stack.
	return provider.Tracer(scope).Start(ctx, name,
		trace.WithSpanKind(kind), trace.WithAttributes(slices.Clone(attributes)...))
}
