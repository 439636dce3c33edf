// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestLost: a turn ends at once with the reason when its agent may not be used any more, whether the agent streams, has
// not answered yet, or is asked again and again. A turn ended before hears nothing of it.
func TestLost(t *testing.T) {
	for name, s := range map[string]script{
		"streams":          {"sendSubscribe": streams(true, news("working")), "send": hangs, "get": says(is("working"))},
		"has not answered": {"sendSubscribe": hangs, "send": hangs},
		"is asked": {"sendSubscribe": says(is("working")), "send": says(is("working")),
			"get": says(is("working"))},
	} {
		for _, way := range append(ways(true), ways(false)...) {
			why := task.Errorf(task.AgentTimeout, "it is not active any more")
			var stopped atomic.Int32
			change := func(s *settings) {
				s.Lost = func(f func(*task.Error)) func() {
					time.AfterFunc(10*time.Second, func() { f(why) })
					return func() { stopped.Add(1) }
				}
			}
			withAgent(t, s.handler(), change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				begun := time.Now()
				var last error
				for _, err := range way.run(t.Context(), a, turn("x")) {
					last = err
				}
				if took := time.Since(begun); last != error(why) || took != 10*time.Second || stopped.Load() != 1 {
					t.Errorf("%s, %s: %v after %v, stopped %d times", name, way.name, last, took, stopped.Load())
				}
			})
		}
	}
	withAgent(t, script{"send": says(is("completed"))}.handler(), func(s *settings) {
		s.Lost = func(func(*task.Error)) func() { return func() {} }
	}, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		for _, err := range a.Run(t.Context(), turn("x"), false) {
			if err != nil {
				t.Error(err)
			}
		}
	})
}
