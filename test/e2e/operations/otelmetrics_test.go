// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
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
	agent, receiver := site.NewFakeAgent(t, nil), newMetricsReceiver(t)
	s := site.New(t)
	s.Env = []string{
		"OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=" + receiver.url, "OTEL_TRACES_EXPORTER=none",
		"OTEL_METRIC_EXPORT_INTERVAL=100",
	}
	c := site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL}
	s.Start(c)
	leader := site.LeaderOf(t, s.URL())
	want := func(name string, n float64) {
		t.Helper()
		site.Eventually(t, name+" is exported", func() bool { return receiver.count(name) == n })
	}
	started := "aip_calls_total " + strings.TrimPrefix(agent.URL, "http://") + " aip ok start"
	leader.Start("one", "hello")
	want(started, 1)
	site.Eventually(t, "a histogram is exported", func() bool { return receiver.count("aip_call_duration_seconds") > 0 })
	if said := s.Reload(c); said != "" {
		t.Fatal(said)
	}
	leader.Start("two", "hello")
	want(started, 2)
	leader.Start("three", "hello")
	s.Stop(t)
	want(started, 3)
}
