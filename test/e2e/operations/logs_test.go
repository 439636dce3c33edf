// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// has compares the fields of a line.
func has(t *testing.T, line map[string]any, want map[string]any) {
	t.Helper()
	for name, value := range want {
		if line[name] != value {
			t.Errorf("%s: %s is %v, want %v", line["msg"], name, line[name], value)
		}
	}
}

// TestLogLines reads what a gateway says of itself: once for each Partner when it begins, with the turns that it
// resumes, and about a caller that it refuses.
func TestLogLines(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	const aic = "10001000011K912345E789ABCDEF2353"
	with := site.Config{Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\taic " + aic +
		"\n\t\tcallers aip a2a\n\t}"}
	s.Start(with)
	l := site.LeaderOf(t, s.URL())
	ready := map[string]any{"level": "info", "partner": aic, "agent": "http://" + agent, "dialect": "a2a/legacy",
		"callers": "aip a2a", "store": "pebble " + s.Dir + "/store", "resumed": 0.0}
	has(t, s.Logged(t, "the Partner is ready")[0], ready)
	call := site.StartCall("t1", "slow 600")
	call.Terms.Response = time.Millisecond
	l.Send(call)
	s.Kill()
	s.Start(with)
	ready["resumed"] = 1.0
	if lines := s.Logged(t, "the Partner is ready"); len(lines) != 1 {
		t.Errorf("there are %d lines for one Partner", len(lines))
	} else {
		has(t, lines[0], ready)
	}
	stranger := site.CallerWith(t, s.URL(), l.Sender, site.Issue(t, "not an AIC"))
	stranger.Refused(site.CommandCall(task.Get, "t1"))
	line := s.Logged(t, "a caller was refused")[0]
	has(t, line, map[string]any{"level": "warn", "partner": aic, "certificate": "not an AIC"})
	if address, _ := line["address"].(string); !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("the address is %q", address)
	}
}

// TestLogOfAnAgentThatIsDown: each line about an agent names it and the Leader's task, and no reason is said twice.
func TestLogOfAnAgentThatIsDown(t *testing.T) {
	t.Parallel()
	s := site.Serve(t,
		site.Config{Handle: "aip_gateway {\n\t\tagent a2a http://127.0.0.1:9 {\n\t\t\tretry_for 10s\n\t\t}\n\t}"})
	l := site.LeaderOf(t, s.URL())
	if got := l.Start("t1", "hello"); got.Status.State != task.Failed {
		t.Fatalf("it is %+v", site.AnswerOf(got))
	}
	failed := s.Logged(t, "the agent failed")[0]
	has(t, failed, map[string]any{"level": "warn", "kind": "agent-unavailable", "task": "t1", "leader": l.Sender,
		"agent": "http://127.0.0.1:9"})
	has(t, s.Logged(t, "the agent cannot be reached; trying again")[0], map[string]any{"level": "warn", "task": "t1",
		"agent": "http://127.0.0.1:9"})
	if lines := s.Logged(t, "the agent was not found"); len(lines) != 1 {
		t.Errorf("%d lines say that the agent was not found", len(lines))
	}
	for text := range strings.Lines(s.Out.String()) {
		if n := strings.Count(text, "the agent cannot be reached; start it"); n > 1 {
			t.Errorf("a reason stands %d times in %s", n, text)
		}
	}
}
