// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// TestStopAnswersWaitingCalls stops the gateway while starts wait for their agent: one by the running configuration,
// one by the one before. The next process continues their tasks. Their connections are served by Caddy's server, or by
// loops.
func TestStopAnswersWaitingCalls(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{"by net/http": site.WithoutLoops, "in a loop": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stopsWhileCallsWait(t, options)
		})
	}
}

func stopsWhileCallsWait(t *testing.T, options string) {
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	with := site.Config{Handle: site.GatewayTo(agent), Store: "store pebble " + s.Dir + "/store\n\t\tdrain 500ms",
		Options: options}
	s.Start(with)
	l := site.LeaderOf(t, s.URL()).OverHTTP1()
	answers := make(map[string]chan site.Answered)
	start := func(id string) {
		t.Helper()
		answers[id] = make(chan site.Answered, 1)
		for range 3 { // the third call on a connection is in a loop, as the start is then
			if _, err := l.Try(site.CommandCall(task.Get, "none")); err == nil {
				t.Error("there is a task without a start")
			}
		}
		go func() {
			call := site.StartCall(id, "slow 600")
			call.Terms.Response = 10 * time.Minute
			got, err := l.Try(call)
			if err != nil {
				t.Errorf("%s: %v", id, site.Explain(err))
				got = new(task.Task)
			}
			answers[id] <- site.AnswerOf(got)
		}()
		site.Eventually(t, id+" is at work", func() bool {
			got, err := l.Try(site.CommandCall(task.Get, id))
			return err == nil && got.Status.State == task.Working
		})
	}
	start("before a reload")
	if trouble := s.Reload(with); trouble != "" {
		t.Fatal(trouble)
	}
	start("after it")
	s.Stop(t)
	for id, answer := range answers {
		if diff := cmp.Diff(site.Answered{State: task.Working}, <-answer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	s.Start(with)
	for id := range answers {
		if got := l.Cancel(id); got.Status.State != task.Canceled {
			t.Errorf("%s: after the restart, cancel makes it %+v", id, site.AnswerOf(got))
		}
	}
}
