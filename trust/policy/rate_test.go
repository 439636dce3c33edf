// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestRates reads rates, and finds the mistakes in others.
func TestRates(t *testing.T) {
	for s, want := range map[string]Rate{
		"50/s":           {50, time.Second, 50},
		"50/s burst 100": {50, time.Second, 100},
		"600/m":          {600, time.Minute, 10},
		"10/h":           {10, time.Hour, 1},
		"":               {}, "50": {}, "0/s": {}, "-1/s": {}, "50/d": {}, "50/s burst": {}, "50/s burst 0": {}, "1e3/s": {},
		"5000000000/s": {},
	} {
		got, err := ParseRate(s)
		if got != want || (err == nil) != (want != Rate{}) {
			t.Errorf("%q is %+v, %v", s, got, err)
		}
	}
	for s, want := range map[string]int64{"1000/day": 1000, "0/day": 0, "5": 0, "5/s": 0} {
		if got, err := ParseDaily(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v", s, got, err)
		}
	}
	for s, want := range map[string]int64{"1GiB/day": 1 << 30, "10kB/day": 10_000, "x/day": 0, "0/day": 0, "1GiB": 0} {
		if got, err := ParseDailyBytes(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v", s, got, err)
		}
	}
}

// FuzzRates: an accepted rate can be used for counting.
func FuzzRates(f *testing.F) {
	for _, s := range []string{"50/s burst 100", "1/h", "1000/day", "1GiB/day", "9999999999999999999/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil {
			var b bucket
			now := time.Unix(1e9, 0)
			if _, ok := b.take(r, now); !ok || r.N <= 0 || r.Burst <= 0 {
				t.Errorf("%q is %+v, and its first call is refused", s, r)
			}
			b.level = 0
			if wait, ok := b.take(r, now); ok || wait <= 0 || wait > r.Per {
				t.Errorf("%q has a call again after %v, %v", s, wait, ok)
			}
		}
		if n, err := ParseDaily(s); err == nil && n <= 0 {
			t.Errorf("%q is %d", s, n)
		}
		if n, err := ParseDailyBytes(s); err == nil && n <= 0 {
			t.Errorf("%q is %d", s, n)
		}
	})
}

// TestRetryAfter: the error of a quota says its name, its limit and when there is room.
func TestRetryAfter(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock), Quota{Name: "gold", Starts: 1, Calls: Rate{1, time.Minute, 1}})
		defer b.Close()
		bubble.Pass(time.Hour)
		if _, err := start(t.Context(), p, leaderOf(1), false); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := start(t.Context(), p, leaderOf(1), false)
			e, _ := errors.AsType[*task.Error](err)
			want := map[string]any{"limit": "gold.calls", "max": int64(1), "retryAfter": int64(60)}
			if d := cmp.Diff(want, e.Data); d != "" {
				t.Error(d)
			}
		}
		bubble.Pass(time.Minute)
		_, err := start(t.Context(), p, leaderOf(1), false)
		e, _ := errors.AsType[*task.Error](err)
		want := map[string]any{"limit": "gold.starts", "max": int64(1), "retryAfter": int64(23*3600 - 60)}
		if d := cmp.Diff(want, e.Data); d != "" {
			t.Error(d)
		}
	})
}
