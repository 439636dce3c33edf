// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/notify"
)

var ofWebhooks metric.Set

// The metrics of webhooks.
var (
	metricAttempts = ofWebhooks.Counter("notify_attempts_total",
		"Attempts to deliver a notification, by their result.", "result")
	metricDead     = ofWebhooks.Counter("notify_dead_total", "Notifications that became dead letters, or were dropped.")
	metricPending  = ofWebhooks.Gauge("notify_pending", "Stored notifications that are neither delivered nor dead.")
	metricOldest   = ofWebhooks.Gauge("notify_oldest_seconds", "For how long the oldest pending notification has waited.")
	metricInFlight = ofWebhooks.Gauge("notify_in_flight", "Attempts that are being made.")
	metricReady    = ofWebhooks.Gauge("notify_ready", "Deliveries that wait in memory for their turn.")
	metricBreakers = ofWebhooks.Gauge("notify_breakers_open", "Endpoints in memory whose breaker is open.")
)

// webhooks adds what concerns webhooks.
func (s samples) webhooks(c notify.Counts) {
	s.Add(metricAttempts, float64(c.Delivered), "delivered")
	s.Add(metricAttempts, float64(c.Failed), "failed")
	s.Add(metricDead, float64(c.Dead))
	s.Add(metricPending, float64(c.Pending))
	s.Add(metricOldest, c.Oldest.Seconds())
	s.Add(metricInFlight, float64(c.InFlight))
	s.Add(metricReady, float64(c.Ready))
	s.Add(metricBreakers, float64(c.Open))
}
