// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestSilenceIsNoLoss: an agent at work without a word after a cut has the time of every silent agent. It has lost the
// task if it says so, or if its answers stopped and came back, and the task is as before from then on.
//
// Lenient: an error saying "not found" to a question about a task
func TestSilenceIsNoLoss(t *testing.T) {
	const timeout = 5 * time.Minute
	const lost = "agent-timeout: the agent has lost the task: its answers stopped and came back, and since then it " +
		"reports that it works, but changes nothing for 30s"
	working, done := is("working"), is("completed")
	// at answers as one of several steps, each from a time on; the times are those since the first call.
	at := func(steps map[time.Duration]step) step {
		var begun time.Time
		return func(w http.ResponseWriter, r *http.Request, n int) {
			if begun.IsZero() {
				begun = time.Now()
			}
			var from time.Duration
			now := steps[0]
			for d, s := range steps {
				if since := time.Since(begun); since >= d && d >= from {
					from, now = d, s
				}
			}
			now(w, r, n)
		}
	}
	down := raw("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
	internal := says(fails(-32603, "Task not found: t"))
	for name, tc := range map[string]struct {
		get, resubscribe step
		want             string // the last report
		took             time.Duration
	}{
		"it says that it works": {at(map[time.Duration]step{0: says(working), 45 * time.Second: says(done)}), nil,
			"completed", 45 * time.Second},
		"its new stream is open": {at(map[time.Duration]step{0: says(working), 45 * time.Second: says(done)}),
			func(w http.ResponseWriter, r *http.Request, n int) {
				slowly(true, "data: "+news("working"), 45*time.Second, "data: "+news("completed"))(w, r, n)
			}, "completed", 45 * time.Second},
		"for too long": {says(working), nil, "agent-timeout: the agent has changed nothing for 5m0s", timeout},
		"it has restarted": {at(map[time.Duration]step{0: says(working), 10 * time.Second: down,
			20 * time.Second: says(working)}), nil, lost, 50 * time.Second},
		"it has restarted, and goes on": {at(map[time.Duration]step{0: says(working), 10 * time.Second: down,
			20 * time.Second: says(working), 30 * time.Second: says(is("working", has("a"))), 90 * time.Second: says(done)}),
			nil, "completed", 90 * time.Second},
		"it has restarted, and its new stream is open": {at(map[time.Duration]step{0: says(working), 10 * time.Second: down,
			20 * time.Second: says(working), 90 * time.Second: says(done)}),
			func(w http.ResponseWriter, r *http.Request, n int) {
				streams(n > 0, news("working"))(w, r, n)
			}, "completed", 90 * time.Second},
		"one failure": {at(map[time.Duration]step{0: says(working), 10 * time.Second: answersWith(500, fails(-32603, "oops")),
			12 * time.Second: says(working), 90 * time.Second: says(done)}), nil, "completed", 90 * time.Second},
		"it does not know the task, by another error": {internal, nil,
			"task-not-found: the agent does not know this task: the agent failed: Task not found: t", 30 * time.Second},
		"it does not know the task for a time": {at(map[time.Duration]step{0: internal, 20 * time.Second: says(done)}), nil,
			"completed", 20 * time.Second},
	} {
		s := script{"sendSubscribe": streams(false, news("working")), "get": tc.get}
		if tc.resubscribe != nil {
			s["resubscribe"] = tc.resubscribe
		}
		withAgent(t, s.handler(), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			begun := time.Now()
			got := show(a.Run(t.Context(), turn("x"), true))
			if last := got[len(got)-1]; last != tc.want {
				t.Errorf("%s: the turn ends with %q, want %q", name, last, tc.want)
			}
			if took := time.Since(begun); took < tc.took || took > tc.took+5*time.Second {
				t.Errorf("%s: it took %v, want %v", name, took, tc.took)
			}
		})
	}
}

// TestNamesThatWereMadeUp: an agent with its own names for tasks, without one for this task yet, cannot know it by the
// gateway's name. Whatever error it answers by, the task is not polled.
func TestNamesThatWereMadeUp(t *testing.T) {
	for name, get := range map[string]step{
		"internal error": says(fails(-32603, "KeyError")),
		"as HTTP 500":    answersWith(500, fails(-32603, "Task not found")),
		"invalid params": says(fails(-32602, "no UUID")),
		"another error":  says(fails(-32000, "no")),
		"unknown":        says(fails(-32001, "no")),
		"not supported":  says(fails(-32004, "no")),
	} {
		s := script{"tasks/get": get, "get": get}
		speaks := func(s *settings) { s.Codec = a2a.V03() }
		withAgent(t, s.handler(), speaks, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			begun := time.Now()
			var last error
			for _, err := range a.Resume(t.Context(), &agent.Turn{Ref: agent.Ref{Task: "made-up", Session: "s"},
				Message: task.Message{DataItems: []task.DataItem{task.Text("x")}}}) {
				last = err
			}
			if took := time.Since(begun); task.KindOf(last) != task.TaskNotFound || took > 5*time.Second {
				t.Errorf("%s: %v after %v", name, last, took)
			}
		})
	}
}
