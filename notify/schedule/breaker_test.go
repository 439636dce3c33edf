// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"
)

func TestBreaker(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var b breaker
	for i := range failuresToOpen {
		if opened := b.fail(now); opened != (i == failuresToOpen-1) {
			t.Fatalf("after %d failures: %v", i+1, opened)
		}
	}
	for want := firstOpen; want < 4*maxOpen; want *= 2 {
		most := min(want, maxOpen)
		if d := b.until.Sub(now); d < most*8/10 || d > most*12/10 || !b.open(now) || b.halfOpen(now) {
			t.Errorf("open for %v, want %v", d, most)
		}
		if b.fail(now) {
			t.Error("an attempt that began before has opened it again")
		}
		if at := b.after(now); at.Before(b.until) {
			t.Errorf("come back at %v, before %v", at, b.until)
		}
		now = b.until
		if !b.halfOpen(now) || !b.fail(now) {
			t.Error("half-open, it does not open again")
		}
	}
	if !b.succeed() || b.succeed() || b != (breaker{}) {
		t.Errorf("%+v", b)
	}
	if !b.hold(now, 48*time.Hour) || b.hold(now, time.Second) || b.until != now.Add(maxOpen) {
		t.Errorf("%+v", b)
	}
}
