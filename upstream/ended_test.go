// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestStreamWithoutALastState: the content of a stream, ended by its agent without a settled state, is the result if
// the agent then does not tell the state of the task. Without a result the turn fails, and the error gives the reason.
func TestStreamWithoutALastState(t *testing.T) {
	const (
		remark = ": the agent has ended its stream without saying that it is done, and does not say how the task stands"
		noGet  = "invalid-agent-response: the agent has answered and not ended the turn, and it has no method to ask how " +
			"the task stands"
		forgot = "task-not-found: the agent does not know this task: no such task"
		grace  = 2 * time.Second
		resend = 5 * time.Second
	)
	event := func(s string) string { return "data: " + s }
	working := event(said("working", false, "hm"))
	unknown := says(fails(-32001, "no such task"))
	failing := says(fails(-32603, "KeyError"))
	artifact := event(chunk("a", false))
	final := event(said("working", true, "ok"))
	done := event("[DONE]")
	knows := says(is("completed", has("a", "b")))
	for name, tc := range map[string]struct {
		stays bool
		lines []any
		get   step // nil for no such method
		want  []string
		took  time.Duration
	}{
		"no get":        {false, []any{working, artifact}, nil, []string{"working: hm", "artifact-0+=a", remark}, 0},
		"nothing known": {false, []any{working, artifact}, unknown, []string{"working: hm", "artifact-0+=a", remark}, 0},
		"pieces": {false, []any{artifact, event(chunk("b", true))}, unknown,
			[]string{"artifact-0+=a", "artifact-0+=b", remark}, 0},
		"a get that fails": {false, []any{artifact}, failing, []string{"artifact-0+=a", remark}, resend},
		"a get that knows": {false, []any{artifact}, knows,
			[]string{"artifact-0+=a", "completed artifact-0=ab"}, 0},
		"no get, without a result":        {false, []any{working}, nil, []string{"working: hm", noGet}, 0},
		"nothing known, without a result": {false, []any{working}, unknown, []string{"working: hm", forgot}, 0},
		"no get, without an event":        {false, []any{time.Duration(0)}, nil, []string{noGet}, 0},

		"done": {true, []any{working, artifact, done}, unknown,
			[]string{"working: hm", "artifact-0+=a", remark}, grace},
		"done, at the end":    {false, []any{artifact, done}, unknown, []string{"artifact-0+=a", remark}, 0},
		"words, and done":     {false, []any{working, done}, unknown, []string{"working: hm", ": hm" + remark}, 0},
		"completed, and done": {true, []any{event(said("completed", false, "ok")), done}, nil, []string{"completed: ok"}, 0},

		"final": {true, []any{artifact, final}, nil, []string{"artifact-0+=a", "working: ok", ": ok" + remark}, grace},
		"final, and a get that knows": {true, []any{final}, knows,
			[]string{"working: ok", "completed artifact-0=ab"}, grace},
		"final, and it goes on": {true, []any{final, time.Second, artifact, time.Second, working, 2 * grace,
			event(said("completed", true, "done"))}, nil,
			[]string{"working: ok", "artifact-0+=a", "working: hm", "completed: done"}, 2*time.Second + 2*grace},
		"final, and pieces": {true, []any{artifact, final, time.Second, event(chunk("b", true))}, nil,
			[]string{"artifact-0+=a", "working: ok", "artifact-0+=b", ": ok" + remark}, time.Second + grace},
	} {
		for _, method := range []string{"sendSubscribe", "send"} {
			s := script{method: slowly(tc.stays, tc.lines...)}
			if tc.get != nil {
				s["get"] = tc.get
			}
			resends := func(s *settings) { s.ResendAfter = resend }
			withAgent(t, s.handler(), resends, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				begun := time.Now()
				var got []string
				for rep, err := range a.Run(t.Context(), turn("x"), method == "sendSubscribe") {
					if rep.Delivery != agent.DeliveryUnknown {
						continue
					}
					says := one(rep, err)
					for _, it := range rep.Items {
						says += ": " + it.Text
					}
					got = append(got, says)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s, by %s: (-want +got):\n%s", name, method, diff)
				}
				if took := time.Since(begun); took < tc.took || took > tc.took+4*time.Second {
					t.Errorf("%s, by %s: it took %v, want %v", name, method, took, tc.took)
				}
			})
		}
	}
}

// TestCutStreamIsNoEnd: the content of a stream is no result if its connection breaks.
func TestCutStreamIsNoEnd(t *testing.T) {
	for name, get := range map[string]struct {
		step step
		want string
	}{
		"unknown": {says(fails(-32001, "no such task")), "task-not-found: the agent does not know this task: no such task"},
		"no get": {nil, "invalid-agent-response: the agent has answered and not ended the turn, and it has no method to " +
			"ask how the task stands"},
	} {
		s := script{"sendSubscribe": func(w http.ResponseWriter, r *http.Request, n int) {
			slowly(false, "data: "+chunk("a", false), time.Second)(w, r, n)
			panic(http.ErrAbortHandler)
		}}
		if get.step != nil {
			s["get"] = get.step
		}
		withAgent(t, s.handler(), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			want := []string{"artifact-0+=a", get.want}
			if diff := cmp.Diff(want, show(a.Run(t.Context(), turn("x"), true))); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
		})
	}
}
