// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracer records the spans that are no part of a traced call: those of turns that are resumed after a restart, and of
// deliveries. Caddy's tracing directive records those of calls, but its provider is private to it.
type tracer struct {
	sdk *sdktrace.TracerProvider // nil if spans are not exported
	log *slog.Logger
}

// newTracer returns a tracer that exports spans as the environment variables of OpenTelemetry say.
func newTracer(ctx context.Context, log *slog.Logger) *tracer {
	if !exportsSpans(os.Getenv) {
		return new(tracer)
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil { // tasks are more important than their traces
		log.Error("spans of resumed turns and deliveries are not exported", "error", err)
		return new(tracer)
	}
	return &tracer{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter)), log}
}

// exportsSpans reports whether the environment asks for spans. Without any variable, OpenTelemetry would export to
// localhost.
func exportsSpans(env func(string) string) bool {
	if env("OTEL_SDK_DISABLED") == "true" || env("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return env("OTEL_TRACES_EXPORTER") != "" || env("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// provider returns the provider of spans; nil for none.
func (t *tracer) provider() trace.TracerProvider {
	if t.sdk == nil {
		return nil
	}
	return t.sdk
}

// exportTimeout is how long the export of the last spans may take.
const exportTimeout = 3 * time.Second

// close exports the last spans.
func (t *tracer) close() {
	if t.sdk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	if err := t.sdk.Shutdown(ctx); err != nil {
		t.log.Warn("the last spans were not exported", "error", err)
	}
}
