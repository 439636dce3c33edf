// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"testing"
	"testing/synctest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestTraces: a turn belongs to its caller's trace if that is recorded, and to the engine's own tracer if there is no
// caller any more, because the turn was resumed after a restart.
func TestTraces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		callers, own := tracetest.NewSpanRecorder(), tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(callers)).Tracer("test")
		o := Options{Tracing: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(own))}
		store := memory(t)
		first := setUpWith(t, store, hangs(), o)
		ctx, span := tracer.Start(t.Context(), "call")
		c := call(task.Start, "t1")
		c.Terms.Response = 1
		if _, err := first.Do(ctx, leader, c); err != nil {
			t.Fatal(err)
		}
		span.End()
		first.Unregister()
		first.engine.Close()
		if got := names(own); len(got) != 0 {
			t.Errorf("before the restart, the engine's own tracer has %v", got)
		}
		if got := names(callers); len(got) != 2 || got[0] != "call" || got[1] != "aip.run" {
			t.Errorf("the caller's tracer has %v", got)
		}
		agent := answers("hello")
		agent.resume = agent.run
		again := setUpWith(t, store, agent, o)
		synctest.Wait()
		if got := names(own); len(got) != 1 || got[0] != "aip.run" {
			t.Errorf("after the restart, the engine's own tracer has %v", got)
		}
		list, _, err := Engines{again.engine}.Tasks(t.Context(), TaskFilter{})
		if want := span.SpanContext().TraceID().String(); err != nil || len(list) != 1 || list[0].Trace != want {
			t.Errorf("the task is listed as %+v, %v; want the trace %s of its start", list, err, want)
		}
	})
}

func names(r *tracetest.SpanRecorder) (names []string) {
	for _, s := range r.Ended() {
		names = append(names, s.Name())
	}
	return names
}
