// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
)

// TestTracerOf: the tracer of a recorded parent is used, then the gateway's own, then none.
func TestTracerOf(t *testing.T) {
	callers, own := tracetest.NewSpanRecorder(), tracetest.NewSpanRecorder()
	caller := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(callers))
	ours := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(own))
	recorded, parent := caller.Tracer("test").Start(t.Context(), "call")
	remote := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
	unsampled := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{3}, SpanID: trace.SpanID{4},
	}))
	for _, c := range []struct {
		name    string
		ctx     context.Context
		own     trace.TracerProvider
		by      *tracetest.SpanRecorder // nil for none
		parent  trace.SpanID
		enabled bool
	}{
		{"a recorded parent", recorded, ours, callers, parent.SpanContext().SpanID(), true},
		{"a recorded parent, no tracer of its own", recorded, nil, callers, parent.SpanContext().SpanID(), true},
		{"no parent", t.Context(), ours, own, trace.SpanID{}, true},
		{"a remote parent", remote, ours, own, trace.SpanID{2}, true},
		{"a parent that is not sampled", unsampled, ours, nil, trace.SpanID{}, true},
		{"no tracer", remote, nil, nil, trace.SpanID{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(callers.Ended()) + len(own.Ended())
			if got := tracing.Enabled(c.ctx, c.own); got != c.enabled {
				t.Errorf("enabled: %v", got)
			}
			ctx, span := tracing.Start(c.ctx, c.own, trace.SpanKindClient, "aip.test", attribute.String("k", "v"))
			span.End()
			if !c.enabled && ctx != c.ctx {
				t.Error("the context is another one, though nothing is traced")
			}
			if c.by == nil {
				if n := len(callers.Ended()) + len(own.Ended()); n != before || span.IsRecording() {
					t.Errorf("%d spans were recorded", n-before)
				}
				return
			}
			ended := c.by.Ended()
			got := ended[len(ended)-1]
			if got.Name() != "aip.test" || got.SpanKind() != trace.SpanKindClient || got.Parent().SpanID() != c.parent ||
				len(got.Attributes()) != 1 || got.Attributes()[0] != attribute.String("k", "v") {
				t.Errorf("the span %s of kind %s below %s has %v", got.Name(), got.SpanKind(), got.Parent().SpanID(),
					got.Attributes())
			}
			if trace.SpanFromContext(ctx) != span {
				t.Error("the context does not hold the span")
			}
		})
	}
}

// TestLogLines: a line has the id of the trace of its context, sampled or not, and none if there is none.
func TestLogLines(t *testing.T) {
	const id = "0102030405060708090a0b0c0d0e0f10"
	traced, err := trace.TraceIDFromHex(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{
		{t.Context(), ""},
		{trace.ContextWithSpanContext(t.Context(), trace.SpanContext{}.WithTraceID(traced)), id},
		{trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: traced, SpanID: trace.SpanID{1}, Remote: true})), id},
	} {
		var r slog.Record
		tracing.AddID(c.ctx, &r)
		got := ""
		r.Attrs(func(a slog.Attr) bool {
			got += a.String()
			return true
		})
		if want := strings.TrimSuffix(tracing.IDKey+"="+c.want, tracing.IDKey+"="); got != want {
			t.Errorf("a line has %q, want %q", got, want)
		}
	}
	for text, want := range map[string]string{"00-" + id + "-0102030405060708-00": id, "": "", "00-" + id: ""} {
		if got := tracing.IDOf(text); got != want {
			t.Errorf("the trace of %q is %q, want %q", text, got, want)
		}
	}
}

// TestNothingTraced: if nothing is traced, a span costs no memory.
func TestNothingTraced(t *testing.T) {
	ctx, id := t.Context(), t.Name()
	if n := testing.AllocsPerRun(100, func() {
		_, span := tracing.Start(ctx, nil, trace.SpanKindInternal, "aip.test", attribute.String("id", id),
			attribute.String("more", id))
		span.End()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
