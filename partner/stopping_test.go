// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestWaitingEndsWhenTheProcessStops has calls wait for an agent that works on, and then stops the process.
func TestWaitingEndsWhenTheProcessStops(t *testing.T) {
	for name, tc := range map[string]struct {
		response time.Duration // that the Leader agreed to
		stopped  bool          // before the call comes
		most     time.Duration // that the call may wait once the process stops
	}{
		"while it waits":    {time.Hour, false, 5 * time.Second},
		"before it comes":   {time.Hour, true, 5 * time.Second},
		"a Leader in haste": {61 * time.Second, false, time.Second},
	} {
		bubble.Test(t, func(t *testing.T) {
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			stopping := make(chan struct{})
			b := setUp(t, store, hangs(), func(c *Config) { c.Stopping, c.Drain = stopping, 5*time.Second })
			if tc.stopped {
				close(stopping)
			} else {
				time.AfterFunc(time.Minute, func() { close(stopping) })
			}
			begin := time.Now()
			if !tc.stopped {
				begin = begin.Add(time.Minute)
			}
			got := b.do(call(task.Start, "t", func(c *Request) { c.Terms.Response = tc.response }))
			if diff := cmp.Diff(task.Working, got.Status.State); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
			if waited := time.Since(begin); waited < 0 || waited > tc.most {
				t.Errorf("%s: it was answered %s after the stop, want at most %s", name, waited, tc.most)
			}
			b.engine.Close()
		})
	}
}
