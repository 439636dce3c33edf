// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestClock: the clock is the machine's: it goes on while the machine is suspended, and never back.
func TestClock(t *testing.T) {
	var up float64
	data, err := os.ReadFile("/proc/uptime")
	if err == nil {
		_, err = fmt.Sscan(string(data), &up)
	}
	if err != nil {
		t.Fatal(err)
	}
	last := now()
	if least := time.Duration(up*1e9) - 20*time.Millisecond; last < least {
		t.Errorf("the clock says %v, but the machine is up for %v", last, least)
	}
	for range 1000 {
		at := now()
		if at < last {
			t.Fatalf("the clock went back from %v to %v", last, at)
		}
		last = at
	}
	if sinceStart() < 0 {
		t.Error("the other clock goes back")
	}
}
