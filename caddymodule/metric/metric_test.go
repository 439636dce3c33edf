// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric/metrictest"
	"github.com/aip-gateway/aip-gateway/internal/measure"
)

// TestCollector: the collector of a set describes all of its metrics, and sends the values that there are.
func TestCollector(t *testing.T) {
	var of Set
	calls, up := of.Counter("calls_total", "Calls.", "agent"), of.Gauge("up", "Whether it is up.", "agent")
	took := of.Histogram("took_seconds", "Time.")
	of.Gauge("none", "Has no value.")
	var durations measure.Durations
	durations.Add(time.Second)
	durations.Add(time.Minute)
	c := of.Collector(func(s Samples) {
		s.Add(calls, 3, "one")
		s.Add(calls, 4, "two")
		s.Flag(up, true, "one")
		s.Flag(up, false, "two")
		s.Durations(took, durations.Snapshot())
	})
	want := map[string]float64{`aip_calls_total{agent="one"}`: 3, `aip_calls_total{agent="two"}`: 4,
		`aip_up{agent="one"}`: 1, `aip_up{agent="two"}`: 0, "aip_took_seconds": 2}
	if diff := cmp.Diff(want, metrictest.Gather(t, c)); diff != "" {
		t.Errorf("the values (-want +got):\n%s", diff)
	}
	out := make(chan *prometheus.Desc, 10)
	c.Describe(out)
	if len(out) != 4 {
		t.Errorf("%d metrics are described", len(out))
	}
}

// TestDurations: a histogram has the buckets, the sum and the traces of what was measured.
func TestDurations(t *testing.T) {
	var of Set
	d, out := of.Histogram("took_seconds", "Time."), make(chan prometheus.Metric, 1)
	Samples{out}.Durations(d, measure.Snapshot{Count: 3, Sum: 7.5, Buckets: map[float64]uint64{1: 1, 5: 3},
		Exemplars: []*measure.Exemplar{{Took: 4, At: time.Unix(9, 0), TraceID: "trace", SpanID: "span"}}})
	var m dto.Metric
	if err := (<-out).Write(&m); err != nil {
		t.Fatal(err)
	}
	h := m.GetHistogram()
	buckets := make(map[float64]uint64)
	exemplars := make(map[float64]map[string]string)
	for _, b := range h.GetBucket() {
		buckets[b.GetUpperBound()] = b.GetCumulativeCount()
		if e := b.GetExemplar(); e != nil {
			labels := make(map[string]string)
			for _, l := range e.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			exemplars[b.GetUpperBound()] = labels
		}
	}
	if h.GetSampleCount() != 3 || h.GetSampleSum() != 7.5 {
		t.Errorf("%d durations of %v s", h.GetSampleCount(), h.GetSampleSum())
	}
	if diff := cmp.Diff(map[float64]uint64{1: 1, 5: 3}, buckets); diff != "" {
		t.Errorf("the buckets (-want +got):\n%s", diff)
	}
	want := map[float64]map[string]string{5: {"trace_id": "trace", "span_id": "span"}}
	if diff := cmp.Diff(want, exemplars); diff != "" {
		t.Errorf("the traces (-want +got):\n%s", diff)
	}
}
