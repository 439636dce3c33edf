// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAlarm(t *testing.T) {
	a := NewAlarm(time.Now)
	base := time.Now()
	told := func() bool {
		select {
		case <-a.kick:
			return true
		default:
			return false
		}
	}
	a.At(base)
	if told() || !a.Next().IsZero() {
		t.Error("the first look is not at once")
	}
	a.Begin()
	a.At(time.Time{})
	a.At(Recover)
	if told() || !a.Next().Equal(EndOfTime) {
		t.Error("what is due at no time changes something")
	}
	for _, step := range []struct {
		at      int
		earlier bool
		next    int
	}{{50, true, 50}, {60, false, 50}, {50, false, 50}, {40, true, 40}} {
		a.At(base.Add(time.Duration(step.at) * time.Second))
		if got := told(); got != step.earlier || !a.Next().Equal(base.Add(time.Duration(step.next)*time.Second)) {
			t.Errorf("%+v: told %v, next %v", step, got, a.Next())
		}
	}
	a.Begin()
	a.At(base.Add(30 * time.Second)) // while the look is on
	a.At(base.Add(20 * time.Second))
	if !told() || told() {
		t.Error("two earlier times are not told once")
	}
	if got := a.End(base.Add(25 * time.Second)); !got.Equal(base.Add(20 * time.Second)) {
		t.Errorf("the next look is at %v", got)
	}
	a.Begin()
	if got := a.End(base.Add(25 * time.Second)); !got.Equal(base.Add(25*time.Second)) || told() {
		t.Errorf("the next look is at %v", got)
	}
}

// TestAlarmWaits: a look comes when it is due by the wall clock, and soon after that is stepped.
func TestAlarmWaits(t *testing.T) {
	for _, c := range []struct {
		name    string
		due     time.Duration // when the look is planned, from the start
		earlier time.Duration // when it is planned instead, given after a second; 0 for never
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
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := NewAlarm(func() time.Time {
					if now := time.Now(); now.Sub(began) >= 2*time.Second {
						return now.Add(c.step)
					} else {
						return now
					}
				})
				if stepped, ok := a.Wait(nil); stepped || !ok || !time.Now().Equal(began) {
					t.Errorf("the first look is not at once, but at %v", time.Since(began))
				}
				a.Begin()
				a.End(began.Add(c.due))
				if c.earlier != 0 {
					time.AfterFunc(time.Second, func() { a.At(began.Add(c.earlier)) })
				}
				stepped, ok := a.Wait(nil)
				if took := time.Since(began); stepped != c.stepped || !ok || took != c.after {
					t.Errorf("a look after %v, stepped %v, %v", took, stepped, ok)
				}
				done := make(chan struct{})
				close(done)
				a.Begin()
				if _, ok := a.Wait(done); ok {
					t.Error("a look after the end")
				}
			})
		})
	}
}
