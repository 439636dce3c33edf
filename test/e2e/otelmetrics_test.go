// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// metricsReceiver receives metrics by OTLP over HTTP, and keeps the last value of each counter and histogram.
type metricsReceiver struct {
	url string

	mu     sync.Mutex
	counts map[string]float64 // by the name of the metric and the values of its attributes
}

func newMetricsReceiver(t testing.TB) *metricsReceiver {
	t.Helper()
	m := &metricsReceiver{counts: make(map[string]float64)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var all v1.ExportMetricsServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &all)
		}
		if r.URL.Path != "/v1/metrics" || err != nil {
			t.Errorf("the receiver was sent %s: %v", r.URL.Path, err)
			http.Error(w, "no metrics", http.StatusBadRequest)
			return
		}
		m.keep(&all)
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *metricsReceiver) keep(all *v1.ExportMetricsServiceRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, resource := range all.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			for _, metric := range scope.GetMetrics() {
				for _, p := range metric.GetSum().GetDataPoints() {
					name := metric.GetName()
					for _, a := range p.GetAttributes() {
						name += " " + a.GetValue().GetStringValue()
					}
					m.counts[name] = p.GetAsDouble()
				}
				for _, p := range metric.GetHistogram().GetDataPoints() {
					m.counts[metric.GetName()] += float64(p.GetCount())
				}
			}
		}
	}
}

func (m *metricsReceiver) count(name string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[name]
}

// TestMetricsThroughOpenTelemetry: the same metrics are pushed where the environment says so, also after a reload, and
// for a last time at the end.
func TestMetricsThroughOpenTelemetry(t *testing.T) {
	t.Parallel()
	agent, receiver := newFakeAgent(t, nil), newMetricsReceiver(t)
	s := newSite(t)
	s.env = []string{
		"OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.url, "OTEL_TRACES_EXPORTER=none",
		"OTEL_METRIC_EXPORT_INTERVAL=100",
	}
	c := config{handle: "aip_gateway a2a/legacy " + agent.url}
	s.start(c)
	leader := leaderOf(t, s.url())
	want := func(name string, n float64) {
		t.Helper()
		eventually(t, name+" is exported", func() bool { return receiver.count(name) == n })
	}
	started := "aip_calls_total " + strings.TrimPrefix(agent.url, "http://") + " aip ok start"
	leader.start("one", "hello")
	want(started, 1)
	eventually(t, "a histogram is exported", func() bool { return receiver.count("aip_call_duration_seconds") > 0 })
	if said := s.reload(c); said != "" {
		t.Fatal(said)
	}
	leader.start("two", "hello")
	want(started, 2)
	leader.start("three", "hello")
	s.stop(t)
	want(started, 3)
}
