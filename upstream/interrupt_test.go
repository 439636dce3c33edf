// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestReceive: the first possible end of a wait ends it. A value of the channel comes before all others.
func TestReceive(t *testing.T) {
	ended := new(upstream.Interrupt)
	ended.End()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		sends     time.Duration // 0 for at once
		ctx       context.Context
		interrupt *upstream.Interrupt
		until     time.Duration
		idle      time.Duration
		want      error
		kind      task.Kind
		after     time.Duration
	}{
		"a value that is there": {interrupt: ended, ctx: canceled},
		"a value":               {sends: time.Second, after: time.Second, idle: time.Minute},
		"silence":               {sends: time.Hour, idle: time.Minute, kind: task.AgentTimeout, after: time.Minute},
		"a context":             {sends: time.Hour, ctx: canceled, want: context.Canceled},
		"an interrupt":          {sends: time.Hour, interrupt: ended, want: upstream.ErrInterrupted},
		"the end of an interrupt": {sends: time.Hour, interrupt: new(upstream.Interrupt), until: time.Second,
			want: upstream.ErrInterrupted, after: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				from := make(chan int, 1)
				if tt.sends == 0 {
					from <- 7
				} else {
					sending := time.AfterFunc(tt.sends, func() { from <- 7 })
					defer sending.Stop()
				}
				if tt.ctx == nil {
					tt.ctx = t.Context()
				}
				if tt.until > 0 {
					tt.interrupt.Until = time.Now().Add(tt.until)
				}
				began := time.Now()
				v, ok, err := upstream.Receive(tt.ctx, from, tt.interrupt, tt.idle)
				failed := tt.want != nil || tt.kind != 0
				if ok == failed || (v == 7) == failed || time.Since(began) != tt.after ||
					tt.want != nil && !errors.Is(err, tt.want) || tt.kind != 0 && task.KindOf(err) != tt.kind {
					t.Errorf("after %v: %d, %v, %v", time.Since(began), v, ok, err)
				}
			})
		})
	}
}
