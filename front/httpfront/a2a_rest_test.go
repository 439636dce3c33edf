// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// events opens a stream of A2A; next returns its next event, "" at its end.
func (g *gate) events(path, body string) (next func() string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), "POST", g.server.URL+"/agents/one"+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := g.server.Client().Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { res.Body.Close() })
	reader := sseproxy.NewReader(res.Body, sseproxy.Limits{})
	return func() string {
		ev, err := reader.Next()
		if err == io.EOF {
			return ""
		}
		if err != nil {
			g.t.Fatal(err)
		}
		return string(ev.Data)
	}
}

// TestSubscribingToATaskThatRests: a stream of a task awaiting input shows it, waits, and shows the events after it.
func TestSubscribingToATaskThatRests(t *testing.T) {
	for name, subscribe := range map[string]func(g *gate, id string) func() string{
		"JSON-RPC": func(g *gate, id string) func() string {
			return g.events("", `{"jsonrpc":"2.0","id":1,"method":"SubscribeToTask","params":{"id":"`+id+`"}}`)
		},
		"REST": func(g *gate, id string) func() string { return g.events("/tasks/"+id+":subscribe", "") },
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, everyCaller)
			id := g.started("ask")
			next := subscribe(g, id)
			if first := next(); !strings.Contains(first, `"TASK_STATE_INPUT_REQUIRED"`) {
				t.Fatalf("the first event is %q", first)
			}
			g.post("/agents/one/message:send", `{"message":{"messageId":"m2","taskId":"`+id+
				`","role":"ROLE_USER","parts":[{"text":"ask"}]}}`)
			last := ""
			for ev := next(); ev != ""; ev = next() {
				last = ev
			}
			if !strings.Contains(last, `"TASK_STATE_COMPLETED"`) {
				t.Errorf("the last event is %q", last)
			}
		})
	}
}

// TestStreamWhileAwaitingAuthorization: a stream stays open, and announces no end, while the task waits for
// authorization, since the agent resumes by itself. The task is found by its state.
func TestStreamWhileAwaitingAuthorization(t *testing.T) {
	const waits = `{"id":"t","status":{"state":"TASK_STATE_AUTH_REQUIRED","message":{"messageId":"m",` +
		`"role":"ROLE_AGENT","parts":[{"text":"log in"}]}}}`
	waiting, err := a2a.V1REST().Reply([]byte(waits), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range streamCalls {
		if c.auth == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			fake := held{until: waiting, release: make(chan struct{})}
			g := open(t, everyA2A, func(h *setup) { h.Partner.Agent = fake })
			next := g.events(c.path, c.body)
			ev := next()
			for ev != "" && !strings.Contains(ev, c.auth) {
				ev = next()
			}
			if !strings.Contains(ev, `"log in"`) || strings.Contains(ev, "a2aState") ||
				strings.Contains(ev, `"final":true`) {
				t.Errorf("it waits by %q", ev)
			}
			for state, listed := range map[string]bool{"AUTH_REQUIRED": true, "INPUT_REQUIRED": false, "WORKING": false} {
				asynctest.Eventually(t, fmt.Sprintf("the task is among those that are %s: %t", state, listed), func() bool {
					_, body := g.request("GET", "/agents/one/tasks?status=TASK_STATE_"+state, "", "", "")
					return strings.Contains(body, `"TASK_STATE_AUTH_REQUIRED"`) == listed
				})
			}
			close(fake.release)
			if last := lastOf(next); !strings.Contains(last, c.done) {
				t.Errorf("the last event is %q", last)
			}
		})
	}
}
