// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestTraffic: an error in an agent's answer shows the agent to be up; a request given up by the gateway shows nothing.
func TestTraffic(t *testing.T) {
	left, leave := context.WithCancel(t.Context())
	leave()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	failed := func(k task.Kind, r Reason) error { return Failed(k, r, nil, "it failed") }
	for name, tt := range map[string]struct {
		ctx     context.Context
		err     error
		outcome string // empty if nothing is counted
		down    bool
	}{
		"an answer":                {t.Context(), nil, "ok", false},
		"an error of the agent":    {t.Context(), failed(task.TaskNotFound, NoReason), "agent error", false},
		"its internal error":       {t.Context(), failed(task.Internal, NoReason), "agent error", false},
		"no connection":            {t.Context(), failed(task.AgentUnavailable, Unreachable), "unreachable", true},
		"a cut connection":         {t.Context(), failed(task.InvalidAgentResponse, Disconnected), "disconnected", true},
		"a server that fails":      {t.Context(), failed(task.InvalidAgentResponse, ServerFailed), "server failed", false},
		"an overloaded server":     {t.Context(), failed(task.AgentUnavailable, Overloaded), "overloaded", false},
		"silence":                  {t.Context(), failed(task.AgentTimeout, NoReason), "timeout", true},
		"a deadline of a question": {late, Ended(late), "timeout", true},
		"a caller that has left":   {left, Ended(left), "", false},
		"no files":                 {t.Context(), failed(task.AgentUnavailable, OutOfFiles), "out of files", false},
	} {
		var traffic Traffic
		traffic.note(tt.ctx, tt.err)
		got, want := make(map[string]uint64), make(map[string]uint64)
		for outcome, n := range traffic.Requests() {
			if n > 0 {
				got[outcome] = n
			}
		}
		if tt.outcome != "" {
			want[tt.outcome] = 1
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		answered := tt.outcome != "" && tt.outcome != "out of files" && !tt.down
		if (traffic.Failed() != nil) != tt.down || traffic.Answered().IsZero() == answered {
			t.Errorf("%s: failed %+v, answered %v", name, traffic.Failed(), traffic.Answered())
		}
	}
}
