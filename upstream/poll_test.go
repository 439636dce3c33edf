// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestPollsWait: a poll refused or failed by the agent's server ends no turn. The next one comes no sooner than the
// server asks for, whatever else happens, and ever later if it asks for nothing.
func TestPollsWait(t *testing.T) {
	down := answersWith(500, "Internal Server Error")
	failing := func(n int, then step) step {
		return func(w http.ResponseWriter, r *http.Request, call int) {
			if call < n {
				down(w, r, call)
				return
			}
			then(w, r, call-n)
		}
	}
	done := says(is("completed"))
	busyAfterNews := func(w http.ResponseWriter, r *http.Request, call int) {
		if call == 0 {
			io.WriteString(w, is("working"))
			return
		}
		busyFor(1, "20", done)(w, r, call-1)
	}
	for name, tc := range map[string]struct {
		get         step
		stream      bool // its events are signs of when to poll
		want        string
		asks        int
		least, most time.Duration
	}{
		"500 once": {failing(1, done), false, "completed", 2, 0, time.Second},
		"500 always": {down, false, "invalid-agent-response: the agent's answer is no JSON-RPC response: a JSON value is " +
			"expected (HTTP 500, application/json)", 0, 30 * time.Second, 33 * time.Second},
		"503 for 20s":            {busyFor(1, "20", done), false, "completed", 2, 20 * time.Second, 21 * time.Second},
		"503 for 20s, with news": {busyAfterNews, true, "completed", 3, 20 * time.Second, 21 * time.Second},
		"503 for too long": {busyFor(99, "3600", done), false, "agent-timeout: the agent has not reported on the task for " +
			"5m0s: the agent takes no requests now (HTTP 503)", 3, 5 * time.Minute, 6 * time.Minute},
		"503 for a minute": {busyFor(7, "", done), false, "completed", 8, time.Minute, 70 * time.Second},
	} {
		at := &listing{Handler: script{
			"send":          says(is("working")),
			"sendSubscribe": streams(false, news("working")),
			"get":           tc.get,
			"resubscribe": func(w http.ResponseWriter, r *http.Request, _ int) {
				w.Header().Set("Content-Type", "text/event-stream")
				for range 10 {
					io.WriteString(w, "data: "+news("working")+"\n\n")
					w.(http.Flusher).Flush()
					pass(r, time.Second)
				}
			},
		}.handler()}
		withAgent(t, at, nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			begun := time.Now()
			got := show(carryOut(t.Context(), a, turn("x"), tc.stream))
			if diff := cmp.Diff(tc.want, got[len(got)-1]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if n := at.times("get"); n != tc.asks && tc.asks > 0 {
				t.Errorf("%s: the agent was asked %d times, want %d", name, n, tc.asks)
			}
			if took := time.Since(begun); took < tc.least || took > tc.most {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}
