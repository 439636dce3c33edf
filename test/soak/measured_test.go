// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

// TestNothingMeasured: a run has failed of which a phase has no latencies, since nothing can be compared.
func TestNothingMeasured(t *testing.T) {
	some := func() *measured {
		return &measured{latencies: map[string][]time.Duration{starts: {time.Millisecond}}}
	}
	s := settings{ratio: 2}
	if err := judge(some(), some(), some(), s); err != nil {
		t.Error(err)
	}
	if judge(new(measured), some(), some(), s) == nil || judge(some(), new(measured), some(), s) == nil ||
		judge(new(measured), new(measured), some(), s) == nil {
		t.Error("a phase without latencies passes")
	}
}
