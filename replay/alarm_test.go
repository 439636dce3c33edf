// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"time"
)

func TestAlarm(t *testing.T) {
	a := NewAlarm()
	base := time.Unix(1000, 0)
	told := func() bool {
		select {
		case <-a.Earlier():
			return true
		default:
			return false
		}
	}
	a.At(time.Time{})
	a.At(AtRestart)
	if told() || !a.Next().IsZero() {
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
