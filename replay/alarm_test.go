// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

func TestAlarm(t *testing.T) {
	a := newAlarm(time.Now)
	base := time.Now()
	kicked := func() bool {
		select {
		case <-a.kick:
			return true
		default:
			return false
		}
	}
	a.at(base)
	if kicked() || !a.planned().IsZero() {
		t.Error("the first scan is not due at once")
	}
	a.begin()
	a.at(time.Time{})
	a.at(Recover)
	if kicked() || !a.planned().Equal(EndOfTime) {
		t.Error("at changes something for no time")
	}
	for _, step := range []struct {
		at      int
		earlier bool
		next    int
	}{{50, true, 50}, {60, false, 50}, {50, false, 50}, {40, true, 40}} {
		a.at(base.Add(time.Duration(step.at) * time.Second))
		if got := kicked(); got != step.earlier || !a.planned().Equal(base.Add(time.Duration(step.next)*time.Second)) {
			t.Errorf("%+v: kicked %v, next %v", step, got, a.planned())
		}
	}
	a.begin()
	a.at(base.Add(30 * time.Second)) // during the scan
	a.at(base.Add(20 * time.Second))
	if !kicked() || kicked() {
		t.Error("two earlier times do not kick once")
	}
	if got := a.end(base.Add(25 * time.Second)); !got.Equal(base.Add(20 * time.Second)) {
		t.Errorf("the next scan is planned for %v", got)
	}
	a.begin()
	if got := a.end(base.Add(25 * time.Second)); !got.Equal(base.Add(25*time.Second)) || kicked() {
		t.Errorf("the next scan is planned for %v", got)
	}
}

// TestAlarmWaits proves a scan to be due at its planned time by the wall clock, and soon after a step of this clock.
func TestAlarmWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		due     time.Duration // when the scan is planned, from the start
		earlier time.Duration // when it is planned instead, after a second; 0 for never
		step    time.Duration // of the wall clock, after two seconds
		stepped bool
		after   time.Duration
	}{
		{"in time", time.Hour, 0, 0, false, time.Hour},
		{"earlier", time.Hour, 10 * time.Minute, 0, false, 10 * time.Minute},
		{"at once", time.Hour, -time.Minute, 0, false, time.Second},
		{"forward", time.Hour, 0, 2 * time.Hour, true, longestSleep},
		{"backward", time.Hour, 0, -2 * time.Hour, true, longestSleep},
		{"slewed", time.Hour, 0, stepSize, false, time.Hour - stepSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				began := time.Now()
				a := newAlarm(func() time.Time {
					if now := time.Now(); now.Sub(began) >= 2*time.Second {
						return now.Add(c.step)
					} else {
						return now
					}
				})
				if stepped, ok := a.wait(nil); stepped || !ok || !time.Now().Equal(began) {
					t.Errorf("the first scan is not due at once, but after %v", time.Since(began))
				}
				a.begin()
				a.end(began.Add(c.due))
				if c.earlier != 0 {
					time.AfterFunc(time.Second, func() { a.at(began.Add(c.earlier)) })
				}
				stepped, ok := a.wait(nil)
				if took := time.Since(began); stepped != c.stepped || !ok || took != c.after {
					t.Errorf("a scan after %v, stepped %v, %v", took, stepped, ok)
				}
				done := make(chan struct{})
				close(done)
				a.begin()
				if _, ok := a.wait(done); ok {
					t.Error("a scan is due after the end")
				}
			})
		})
	}
}
