// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestStopAnswersWaitingCalls stops the gateway while starts wait for their agent: one by the running configuration,
// one by the one before. The next process continues their tasks. Their connections are served by Caddy's server, or by
// loops.
func TestStopAnswersWaitingCalls(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"by net/http": withoutLoops, "in a loop": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopsWhileCallsWait(t, options)
		})
	}
}

func stopsWhileCallsWait(t *testing.T, options string) {
	_, agent := sampleAgent(t)
	s := newSite(t)
	with := config{handle: gatewayTo(agent), store: "store pebble " + s.dir + "/store\n\t\tdrain 500ms", options: options}
	s.start(with)
	l := leaderOf(t, s.url()).overHTTP1()
	answers := make(map[string]chan answered)
	start := func(id string) {
		t.Helper()
		answers[id] = make(chan answered, 1)
		for range 3 { // the third call on a connection is in a loop, as the start is then
			if _, err := l.try(commandCall(task.Get, "none")); err == nil {
				t.Error("there is a task without a start")
			}
		}
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
