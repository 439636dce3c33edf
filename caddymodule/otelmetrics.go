// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// metricsExporter exports Caddy's metrics, with those of the gateway, through OpenTelemetry.
type metricsExporter struct {
	sdk *sdkmetric.MeterProvider // nil if metrics are not exported
	log *slog.Logger
}

func init() {
	autoexport.WithFallbackMetricProducer(func(context.Context) (sdkmetric.Producer, error) {
		return bridge.NewMetricProducer(bridge.WithGatherer(prometheus.GathererFunc(gatherNewest))), nil
	})
}

// newMetricsExporter returns an exporter of metrics as the environment variables of OpenTelemetry say.
func newMetricsExporter(ctx context.Context, log *slog.Logger) *metricsExporter {
	if !exportsMetrics(os.Getenv) {
		return new(metricsExporter)
	}
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil { // tasks are more important than their metrics
		log.Error("metrics are not exported", "error", err)
		return new(metricsExporter)
	}
	return &metricsExporter{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), log}
}

// exportsMetrics reports whether the environment asks for metrics. The address of a receiver alone does not: it is set
// for traces as well, and Prometheus may read the same metrics already.
func exportsMetrics(env func(string) string) bool {
	exporter := env("OTEL_METRICS_EXPORTER")
	return exporter != "" && exporter != "none" && env("OTEL_SDK_DISABLED") != "true"
}

// gatherNewest gathers the metrics of the newest configuration. An exporter outlives configurations, while each of them
// has a registry of its own.
func gatherNewest() ([]*dto.MetricFamily, error) {
	if a := newest(); a != nil {
		return a.metrics.Gather()
	}
	return nil, nil
}

// exportTimeout is how long the last export may take.
const exportTimeout = 3 * time.Second

// close exports for the last time.
func (e *metricsExporter) close() {
	if e.sdk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	if err := e.sdk.Shutdown(ctx); err != nil {
		e.log.Warn("the last metrics were not exported", "error", err)
	}
}
