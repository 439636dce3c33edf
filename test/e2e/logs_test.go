// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// logged returns the lines with a message in what a gateway has logged, as soon as there is one.
func (s *site) logged(t *testing.T, msg string) (lines []map[string]any) {
	t.Helper()
	eventually(t, "the log says "+msg, func() bool {
		lines = nil
		for text := range strings.Lines(s.out.String()) {
			var line map[string]any
			if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == msg {
				lines = append(lines, line)
			}
		}
		return len(lines) > 0
	})
	return lines
}

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
	_, agent := sampleAgent(t)
	s := newSite(t)
	const aic = "10001000011K912345E789ABCDEF2353"
	with := config{handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\taic " + aic + "\n\t\tcallers aip a2a\n\t}"}
	s.start(with)
	l := leaderOf(t, s.url())
	ready := map[string]any{"level": "info", "partner": aic, "agent": "http://" + agent, "dialect": "a2a/legacy",
		"callers": "aip a2a", "store": "pebble " + s.dir + "/store", "resumed": 0.0}
	has(t, s.logged(t, "the Partner is ready")[0], ready)
	call := startCall("t1", "slow 600")
	call.Terms.Response = time.Millisecond
	l.do(call)
	s.kill()
	s.start(with)
	ready["resumed"] = 1.0
	if lines := s.logged(t, "the Partner is ready"); len(lines) != 1 {
		t.Errorf("there are %d lines for one Partner", len(lines))
	} else {
		has(t, lines[0], ready)
	}
	stranger := callerWith(t, s.url(), l.Sender, issue(t, "not an AIC"))
	stranger.refused(commandCall(task.Get, "t1"))
	line := s.logged(t, "a caller was refused")[0]
	has(t, line, map[string]any{"level": "warn", "partner": aic, "certificate": "not an AIC"})
	if address, _ := line["address"].(string); !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("the address is %q", address)
	}
}

// TestLogOfAnAgentThatIsDown: each line about an agent names it and the Leader's task, and no reason is said twice.
func TestLogOfAnAgentThatIsDown(t *testing.T) {
	t.Parallel()
	s := serve(t, config{handle: "aip_gateway {\n\t\tagent a2a http://127.0.0.1:9 {\n\t\t\tretry_for 10s\n\t\t}\n\t}"})
	l := leaderOf(t, s.url())
	if got := l.start("t1", "hello"); got.Status.State != task.Failed {
		t.Fatalf("it is %+v", of(got))
	}
	failed := s.logged(t, "the agent failed")[0]
	has(t, failed, map[string]any{"level": "warn", "kind": "agent-unavailable", "task": "t1", "leader": l.Sender,
		"agent": "http://127.0.0.1:9"})
	has(t, s.logged(t, "the agent cannot be reached; trying again")[0], map[string]any{"level": "warn", "task": "t1",
		"agent": "http://127.0.0.1:9"})
	if lines := s.logged(t, "the agent was not found"); len(lines) != 1 {
		t.Errorf("%d lines say that the agent was not found", len(lines))
	}
	for text := range strings.Lines(s.out.String()) {
		if n := strings.Count(text, "the agent cannot be reached; start it"); n > 1 {
			t.Errorf("a reason stands %d times in %s", n, text)
		}
	}
}
