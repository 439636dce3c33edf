// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

func TestDurations(t *testing.T) {
	var d Durations
	for _, took := range []time.Duration{0, 100 * time.Microsecond, 100*time.Microsecond + 1, time.Second, time.Hour} {
		d.Add(took)
	}
	s := d.Snapshot()
	if s.Count != 5 || s.Sum < 3601 || s.Sum > 3601.1 {
		t.Errorf("count %d, sum %v; want 5 and about 3601", s.Count, s.Sum)
	}
	for bound, want := range map[float64]uint64{0.0001: 2, 0.0005: 3, 0.5: 3, 1: 4, 1800: 4} {
		if got, ok := s.Buckets[bound]; !ok || got != want {
			t.Errorf("at most %v s: %d, want %d", bound, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { d.Add(time.Second) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}

// TestExemplars: the last traced duration of a bucket is its exemplar. An unsampled one costs nothing.
func TestExemplars(t *testing.T) {
	var d Durations
	add := func(took time.Duration, id byte, flags trace.TraceFlags) {
		d.AddTraced(took, trace.SpanFromContext(trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(
			trace.SpanContextConfig{TraceID: trace.TraceID{15: id}, SpanID: trace.SpanID{7: id}, TraceFlags: flags}))))
	}
	add(2*time.Second, 1, trace.FlagsSampled)
	add(3*time.Second, 2, trace.FlagsSampled)
	add(4*time.Second, 3, 0)
	add(time.Hour, 4, trace.FlagsSampled)
	s := d.Snapshot()
	if s.Count != 4 || len(s.Exemplars) != 2 {
		t.Fatalf("%d durations with %d exemplars, want 4 and 2", s.Count, len(s.Exemplars))
	}
	for i, want := range []Exemplar{{Took: 3, TraceID: "02"}, {Took: 3600, TraceID: "04"}} {
		got := s.Exemplars[i]
		if got.Took != want.Took || !strings.HasSuffix(got.TraceID, want.TraceID) ||
			!strings.HasSuffix(got.SpanID, want.TraceID) || got.At.IsZero() {
			t.Errorf("exemplar %d is %+v", i, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { d.AddTraced(time.Second, noop.Span{}) }); n != 0 {
		t.Errorf("AddTraced allocates %v times without a trace", n)
	}
}

// TestQuantile: a quantile is interpolated in its bucket.
func TestQuantile(t *testing.T) {
	var d, late Durations
	late.Add(time.Hour)
	if got := late.Counts().Quantile(0.5); got != 30*time.Minute {
		t.Errorf("beyond the last bound it is %v, want that", got)
	}
	for range 60 {
		d.Add(3 * time.Millisecond)
	}
	for range 40 {
		d.Add(20 * time.Millisecond)
	}
	all := d.Counts()
	if n := all.Total(); n != 100 {
		t.Errorf("%d durations, want 100", n)
	}
	for q, want := range map[float64]time.Duration{
		0.3: 3 * time.Millisecond, 0.6: 5 * time.Millisecond, 0.8: 30 * time.Millisecond, 1: 50 * time.Millisecond,
	} {
		if got := all.Quantile(q); got.Round(time.Microsecond) != want {
			t.Errorf("the quantile %v is %v, want %v", q, got, want)
		}
	}
	var sum Counts
	if got := sum.Quantile(0.5); got != 0 {
		t.Errorf("that of no durations is %v", got)
	}
	sum.Add(all)
	sum.Add(all)
	if sum.Total() != 200 || sum.Quantile(0.8) != all.Quantile(0.8) {
		t.Errorf("the sum is %v", sum)
	}
}
