// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"iter"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// sleeper is an agent with a time of work on every turn, before it rests in a state.
type sleeper struct {
	work  time.Duration
	state task.State
	open  bool // it may continue by itself
}

func (s sleeper) Run(ctx context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if !yield(agent.Report{State: task.Working, Revision: "working"}, nil) {
			return
		}
		timer := time.NewTimer(s.work)
		defer timer.Stop()
		select {
		case <-timer.C:
			if yield(agent.Report{State: s.state, SelfResuming: s.open, Revision: "rests"}, nil) && s.open {
				<-ctx.Done()
			}
		case <-ctx.Done():
		}
	}
}

func (s sleeper) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return s.Run(ctx, t, false)
}

func (sleeper) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	return agent.Report{State: task.Canceled}, nil
}

func (sleeper) Complete(context.Context, *agent.Turn) error { return nil }

// TestBlocking: callers of A2A wait until their task rests, up to the limit; those of AIP for the agreed time.
func TestBlocking(t *testing.T) {
	const (
		send03 = `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":` +
			`{"kind":"message","role":"user","messageId":"m","parts":[{"kind":"text","text":"x"}]}$}}`
		send10 = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` +
			`{"role":"ROLE_USER","messageId":"m","parts":[{"text":"x"}]}$}}`
		rest10  = `{"message":{"role":"ROLE_USER","messageId":"m","parts":[{"text":"x"}]}$}`
		sendOld = `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t","message":` +
			`{"role":"user","parts":[{"type":"text","text":"x"}]}$}}`
		startIP = `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":` +
			`{"type":"message","id":"m","senderRole":"leader",` +
			`"senderId":"l","command":"start","taskId":"t","dataItems":[]$}}}`
	)
	finishes := func(after time.Duration) sleeper { return sleeper{work: after, state: task.AwaitingCompletion} }
	asks := sleeper{work: time.Minute, state: task.AwaitingInput}
	auth := sleeper{work: time.Minute, state: task.AwaitingInput, open: true}
	for name, c := range map[string]struct {
		path, body, more string
		agent            sleeper
		after            time.Duration
		says             string
	}{
		"0.3": {"", send03, "", finishes(5 * time.Minute), 5 * time.Minute, `"state":"completed"`},
		"0.3, blocking": {"", send03, `,"configuration":{"blocking":true}`, finishes(5 * time.Minute),
			5 * time.Minute, `"state":"completed"`},
		"0.3, not blocking": {"", send03, `,"configuration":{"blocking":false}`, finishes(5 * time.Minute), 0,
			`"state":"`},
		"0.3, at the limit":       {"", send03, "", finishes(time.Hour), 10 * time.Minute, `"state":"working"`},
		"0.3, the agent asks":     {"", send03, "", asks, time.Minute, `"state":"input-required"`},
		"0.3, the agent's access": {"", send03, "", auth, time.Minute, `"state":"input-required"`},
		"1.0": {"", send10, "", finishes(5 * time.Minute), 5 * time.Minute,
			`"TASK_STATE_COMPLETED"`},
		"1.0, at once": {"", send10, `,"configuration":{"returnImmediately":true}`,
			finishes(5 * time.Minute), 0, `"TASK_STATE_`},
		"1.0, at the limit":   {"", send10, "", finishes(time.Hour), 10 * time.Minute, `"TASK_STATE_WORKING"`},
		"1.0, the agent asks": {"", send10, "", asks, time.Minute, `"TASK_STATE_INPUT_REQUIRED"`},
		"1.0 REST": {"/message:send", rest10, "", finishes(5 * time.Minute), 5 * time.Minute,
			`"TASK_STATE_COMPLETED"`},
		"legacy":               {"", sendOld, "", finishes(5 * time.Minute), 5 * time.Minute, `"state":"completed"`},
		"legacy, at the limit": {"", sendOld, "", finishes(time.Hour), 10 * time.Minute, `"state":"working"`},
		"aip":                  {"", startIP, "", finishes(5 * time.Minute), 25 * time.Second, `"state":"working"`},
		"aip, by its own word": {"", startIP, `,"commandParams":{"responseTimeout":60000}`,
			finishes(5 * time.Minute), time.Minute, `"state":"working"`},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				h := openSite(t, everyCaller, func(h *setup) { h.Partner.Agent, h.Blocking = c.agent, 10*time.Minute })
				began := time.Now()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("POST", "/"+strings.TrimPrefix(c.path, "/"),
					strings.NewReader(strings.Replace(c.body, "$", c.more, 1))))
				if d := cmp.Diff(c.after, time.Since(began)); d != "" || !strings.Contains(w.Body.String(), c.says) {
					t.Errorf("got %s, want %s; after (-want +got):\n%s", w.Body, c.says, d)
				}
			})
		})
	}
}
