// SPDX-License-Identifier: Apache-2.0

package caddymodule

// The metrics of certificates.
var (
	metricCertFrom = metrics.Gauge("certificate_not_before_timestamp_seconds",
		"Since when a certificate of the configuration is valid, as Unix time.", "use", "file", "subject")
	metricCertUntil = metrics.Gauge("certificate_not_after_timestamp_seconds",
		"Until when a certificate of the configuration is valid, as Unix time.", "use", "file", "subject")
)

// certificates adds until when certificates are valid.
func (s samples) certificates(all certificates) {
	for c, valid := range all {
		s.Add(metricCertFrom, float64(valid.from.Unix()), c.use, c.file, c.subject)
		s.Add(metricCertUntil, float64(valid.until.Unix()), c.use, c.file, c.subject)
	}
}
