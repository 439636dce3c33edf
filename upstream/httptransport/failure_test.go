// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"":                                 0,
		"20":                               20 * time.Second,
		"0":                                0,
		"-1":                               0,
		"1.5":                              0,
		"soon":                             0,
		"9999999999":                       0,
		"Sun, 22 Nov 2026 12:00:30 GMT":    30 * time.Second,
		"Sun, 22 Nov 2026 11:59:30 GMT":    0,
		"Sunday, 22-Nov-26 12:01:00 GMT":   time.Minute,
		"Sun Nov 22 12:01:00 2026":         time.Minute,
		"Sun, 22 Nov 2026 12:00:30 +00:00": 0,
	} {
		if got := retryAfter(field, now); got != want {
			t.Errorf("Retry-After: %s means %v, want %v", field, got, want)
		}
	}
}
