// SPDX-License-Identifier: Apache-2.0

package site

import (
	"testing"
	"time"
)

// Must returns a value that has no error.
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// NoError fails the test if one of the errors is one.
func NoError(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Patience is how long anything may take that should happen at once. Nothing is measured by it: it only keeps
// a broken gateway from hanging a test.
const Patience = time.Minute

// Eventually waits until ok says so. These tests use it to wait for what they cannot be notified of.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventuallyWithin(t, Patience, what, ok)
}

// eventuallyWithin is Eventually for what may take longer.
func eventuallyWithin(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("within %v it did not come true that %s", limit, what)
		}
	}
}

// Outlast waits until the millisecond of a change is over: lists order the changes of tasks by milliseconds.
func Outlast(change time.Time) { time.Sleep(time.Until(change.Add(time.Millisecond))) }

// WithinADay waits for midnight where it is near: a quota counts by days of UTC, and none ends while a test counts.
func WithinADay() {
	now := time.Now()
	if midnight := now.Truncate(24 * time.Hour).Add(24 * time.Hour); midnight.Sub(now) < 2*Patience {
		time.Sleep(time.Until(midnight))
	}
}
