// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestStopAnswersWaitingCalls stops the gateway while starts wait for their agent: one by the running configuration,
// one
// by the one before. The next process continues their tasks.
func TestStopAnswersWaitingCalls(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := newSite(t)
	with := config{handle: gatewayTo(agent), store: "store pebble " + s.dir + "/store\n\t\tdrain 500ms"}
	s.start(with)
	l := leaderOf(t, s.url())
	answers := make(map[string]chan answered)
	start := func(id string) {
		t.Helper()
		answers[id] = make(chan answered, 1)
		go func() {
			call := startCall(id, "slow 600")
			call.Terms.Response = 10 * time.Minute
			got, err := l.try(call)
			if err != nil {
				t.Errorf("%s: %v", id, explain(err))
				got = new(task.Task)
			}
			answers[id] <- of(got)
		}()
		eventually(t, id+" is at work", func() bool {
			got, err := l.try(commandCall(task.Get, id))
			return err == nil && got.Status.State == task.Working
		})
	}
	start("before a reload")
	if trouble := s.reload(with); trouble != "" {
		t.Fatal(trouble)
	}
	start("after it")
	s.stop(t)
	for id, answer := range answers {
		if diff := cmp.Diff(answered{State: task.Working}, <-answer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	s.start(with)
	for id := range answers {
		if got := l.cancel(id); got.Status.State != task.Canceled {
			t.Errorf("%s: after the restart, cancel makes it %+v", id, of(got))
		}
	}
}
