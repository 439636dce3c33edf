// SPDX-License-Identifier: Apache-2.0

package retryafter

import (
	"net/http"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	const most = 24 * time.Hour
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "0": 0, "7": 7 * time.Second, "99999999999999999999999": 0,
		"9223372036854775807":                      most,
		now.Add(time.Hour).Format(http.TimeFormat): time.Hour, now.Add(-time.Hour).Format(http.TimeFormat): 0,
		now.Add(100 * 24 * time.Hour).Format(http.TimeFormat): most,
	} {
		if got := Read(field, now, most); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}
