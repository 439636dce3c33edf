// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestCounterWaits: a wait ends when the last one has left, or after the time, and at once if there is none.
func TestCounterWaits(t *testing.T) {
	for _, c := range []struct {
		what  string
		leave []time.Duration // after which those that are counted leave
		want  time.Duration
	}{
		{"none", nil, 0},
		{"two that leave", []time.Duration{2 * time.Second, time.Second}, 2 * time.Second},
		{"one that stays too long", []time.Duration{time.Second, 6 * time.Second}, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var counter Counter
			for _, after := range c.leave {
				counter.Add(1)
				time.AfterFunc(after, func() { counter.Add(-1) })
			}
			if n := counter.Total(); n != int64(len(c.leave)) {
				t.Errorf("%s: %d are counted", c.what, n)
			}
			began := time.Now()
			counter.Wait(5 * time.Second)
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: it was waited for %v, and not %v", c.what, took, c.want)
			}
			time.Sleep(time.Minute)
			if n := counter.Total(); n != 0 {
				t.Errorf("%s: in the end %d are counted", c.what, n)
			}
		})
	}
}

// TestMetersAreKept: a Partner has one meter of each kind, whichever configuration asks.
func TestMetersAreKept(t *testing.T) {
	p := NewProcess(Host{})
	policies, tokens := p.PolicyMeter("one"), p.TokenMeter("one")
	if policies != p.PolicyMeter("one") || tokens != p.TokenMeter("one") {
		t.Error("a Partner has two meters")
	}
	if policies == p.PolicyMeter("two") || tokens == p.TokenMeter("two") {
		t.Error("two Partners share a meter")
	}
}

// TestExit ends what waits for the end of the process.
func TestExit(t *testing.T) {
	p := NewProcess(Host{})
	if p.Exiting.Err() != nil {
		t.Error("the process ends at its beginning")
	}
	p.Exit()
	if p.Exiting.Err() == nil {
		t.Error("the process does not end")
	}
}
