// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestExportsMetrics: an exporter is named, and is not switched off.
func TestExportsMetrics(t *testing.T) {
	for _, tt := range []struct {
		exporter, disabled string
		want               bool
	}{{"", "", false}, {"none", "", false}, {"otlp", "", true}, {"console", "false", true}, {"otlp", "true", false}} {
		env := map[string]string{"OTEL_METRICS_EXPORTER": tt.exporter, "OTEL_SDK_DISABLED": tt.disabled,
			"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
		if got := exportsMetrics(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("%+v: exported is %v", tt, got)
		}
	}
}

// TestUnknownExporter: tasks are more important than their metrics.
func TestUnknownExporter(t *testing.T) {
	t.Setenv("OTEL_METRICS_EXPORTER", "carrier-pigeon")
	t.Setenv("OTEL_SDK_DISABLED", "")
	var out bytes.Buffer
	e := NewExporter(t.Context(), slog.New(slog.NewTextHandler(&out, nil)))
	e.Close()
	if !strings.Contains(out.String(), "metrics are not exported") {
		t.Errorf("the log is %q", out.String())
	}
}
