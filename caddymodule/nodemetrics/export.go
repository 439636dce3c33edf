// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Exporter exports Caddy's metrics, with those of the gateway, through OpenTelemetry.
type Exporter struct {
	sdk *sdkmetric.MeterProvider // nil if metrics are not exported
	log *slog.Logger
}

// ExportFrom has all Exporters export what is gathered. It is called before the first of them.
func ExportFrom(g prometheus.Gatherer) {
	autoexport.WithFallbackMetricProducer(func(context.Context) (sdkmetric.Producer, error) {
		return bridge.NewMetricProducer(bridge.WithGatherer(g)), nil
	})
}

// NewExporter returns an exporter of metrics as the environment variables of OpenTelemetry say.
func NewExporter(ctx context.Context, log *slog.Logger) *Exporter {
	if !exportsMetrics(os.Getenv) {
		return new(Exporter)
	}
	reader, err := autoexport.NewMetricReader(ctx)
	if err != nil { // tasks are more important than their metrics
		log.Error("metrics are not exported", "error", err)
		return new(Exporter)
	}
	return &Exporter{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), log}
}

// exportsMetrics reports whether the environment asks for metrics. The address of a receiver alone does not: it is set
// for traces as well, and Prometheus may read the same metrics already.
func exportsMetrics(env func(string) string) bool {
	exporter := env("OTEL_METRICS_EXPORTER")
	return exporter != "" && exporter != "none" && env("OTEL_SDK_DISABLED") != "true"
}

// exportTimeout is how long the last export may take.
const exportTimeout = 3 * time.Second

// Close exports for the last time.
func (e *Exporter) Close() {
	if e.sdk == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	if err := e.sdk.Shutdown(ctx); err != nil {
		e.log.Warn("the last metrics were not exported", "error", err)
	}
}
