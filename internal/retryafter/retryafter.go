// SPDX-License-Identifier: Apache-2.0

// Package retryafter reads the time for which an answer of HTTP asks not to be asked again.
package retryafter

import (
	"net/http"
	"strconv"
	"time"
)

// Read reads a Retry-After field (RFC 9110 §10.2.3): seconds, or a date. It returns no longer time than most, and 0
// for a past time, or an unreadable field.
func Read(field string, now time.Time, most time.Duration) (wait time.Duration) {
	if seconds, err := strconv.ParseUint(field, 10, 63); err == nil {
		wait = time.Duration(min(seconds, uint64(most/time.Second))) * time.Second
	} else if at, err := http.ParseTime(field); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), most)
}
