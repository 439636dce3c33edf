// SPDX-License-Identifier: Apache-2.0

package group

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestSpans: a command of the group, its turn and its publications are spans of the Leader's trace, and the published
// messages carry it on.
func TestSpans(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		recorder := tracetest.NewSpanRecorder()
		w := newWorld(t, works, nil)
		w.group.close()
		w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		w.open()
		link := w.connect(true)
		const traceID = "0af7651916cd43dd8448eb211c80319c"
		w.headers = map[string]string{"traceparent": "00-" + traceID + "-b7ad6b7169203331-01"}
		w.send("start", "t", "m1", "")
		bubble.Pass(time.Minute)

		published := 0
		for _, m := range link.taken() {
			published++
			if parent := m.Headers["traceparent"]; !strings.HasPrefix(parent, "00-"+traceID) ||
				strings.Contains(parent, "b7ad6b7169203331") {
				t.Errorf("%s is published in the trace %q", m.Body, parent)
			}
		}
		names := make(map[string]int)
		for _, s := range recorder.Ended() {
			names[s.Name()]++
			if got := s.SpanContext().TraceID().String(); got != traceID {
				t.Errorf("%s is in the trace %s", s.Name(), got)
			}
		}
		if diff := cmp.Diff([]string{"aip.call", "aip.group.command", "aip.group.publish", "aip.run"},
			slices.Sorted(maps.Keys(names))); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
		if published == 0 || names["aip.group.publish"] != published || names["aip.group.command"] != 1 {
			t.Errorf("%d messages are published, by the spans %v", published, names)
		}
		for _, s := range recorder.Started() {
			if s.EndTime().IsZero() {
				t.Errorf("%s does not end", s.Name())
			}
		}
	})
}
