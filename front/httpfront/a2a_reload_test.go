// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// streamCall is a version's way of sending a message and reading the stream of its answer.
type streamCall struct {
	path, body string
	auth       string // the word for a task awaiting authorization; empty if there is none
	done       string // the one for a completed task
}

// streamCalls are those of all versions over HTTP.
var streamCalls = map[string]streamCall{
	"1.0": {"", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"messageId":"m",` +
		`"role":"ROLE_USER","parts":[{"text":"hello"}]}}}`, `"TASK_STATE_AUTH_REQUIRED"`, `"TASK_STATE_COMPLETED"`},
	"1.0, REST": {"/message:stream", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`,
		`"TASK_STATE_AUTH_REQUIRED"`, `"TASK_STATE_COMPLETED"`},
	"0.3": {"", `{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{"message":{"kind":"message",` +
		`"messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}]}}}`, `"auth-required"`, `"completed"`},
	"0.3, REST": {"/v1/message:stream", `{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hello"}]}}`,
		`"TASK_STATE_AUTH_REQUIRED"`, `"TASK_STATE_COMPLETED"`},
	"legacy": {"", `{"jsonrpc":"2.0","id":1,"method":"tasks/sendSubscribe","params":{"id":"t","message":` +
		`{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`, "", `"completed"`},
}

// everyA2A makes a gateway serve all versions of A2A over HTTP.
func everyA2A(h *setup) {
	everyCaller(h)
	h.Callers = append(h.Callers, a2a.V03RESTServer(false))
}

// lastOf reads a stream to its end, and returns the last event.
func lastOf(next func() string) (last string) {
	for ev := next(); ev != ""; ev = next() {
		last = ev
	}
	return last
}

// TestA2AAfterAReload: a stream of A2A goes on when the configuration is replaced: no client resumes it by itself.
func TestA2AAfterAReload(t *testing.T) {
	for name, c := range streamCalls {
		t.Run(name, func(t *testing.T) {
			works := held{until: agent.Report{State: task.Working, Revision: "1"}, release: make(chan struct{})}
			g := open(t, everyA2A, func(h *setup) { h.Partner.Agent = works; h.Streaming.DrainFor = 0 })
			next := g.events(c.path, c.body)
			first := next()
			g.drain()
			g.setup.Streaming.Drain = t.Context()
			g.serving.Store(g.setup.compose(t, g.tasks)) // as a new configuration does
			if n := g.streams(); n != 1 {
				t.Errorf("%d streams are open after a reload", n)
			}
			close(works.release)
			if last := lastOf(next); !strings.Contains(last, c.done) {
				t.Errorf("the stream begins with %s and ends with %s", first, last)
			}
		})
	}
}

// TestA2AAtAnExit: when the process is about to end, a stream of A2A ends with an error, or its end would be taken for
// the answer's.
func TestA2AAtAnExit(t *testing.T) {
	for name, c := range streamCalls {
		t.Run(name, func(t *testing.T) {
			works := held{until: agent.Report{State: task.Working, Revision: "1"}, release: make(chan struct{})}
			exiting, exit := context.WithCancel(t.Context())
			g := open(t, everyA2A, func(h *setup) { h.Partner.Agent = works; h.Streaming.Exit = exiting })
			next := g.events(c.path, c.body)
			next()
			exit()
			if last := lastOf(next); !strings.Contains(last, `"error"`) ||
				!strings.Contains(last, "the gateway is restarted") {
				t.Errorf("the stream ends with %s", last)
			}
			asynctest.Eventually(t, "the stream is closed", func() bool { return g.streams() == 0 })
		})
	}
}
