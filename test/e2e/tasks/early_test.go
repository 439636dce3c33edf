// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// early is a Partner like those on the reference implementation of ACPs v1: it answers a continue with the unchanged
// task, and acts on it later. It has one task, which asks, and which it ends when the test says so.
type early struct {
	mu      sync.Mutex
	since   time.Time
	product string // of the turn that has ended
	said    string // the continue that it is at work on
}

func (e *early) answer(w http.ResponseWriter, r *http.Request, h site.Heard) {
	e.mu.Lock()
	defer e.mu.Unlock()
	message := gjson.GetBytes(h.Body, "params.message")
	command := message.Get("command").Str
	if h.Method != "rpc" {
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	}
	switch command {
	case "start":
		e.since = time.Now()
	case "continue":
		e.said = message.Get("dataItems.0.text").Str
	}
	state, products := task.AwaitingInput, ""
	if e.product != "" {
		state, products = task.AwaitingCompletion, fmt.Sprintf(
			`{"id":"p","dataItems":[{"type":"text","text":%q}]}`,
			e.product,
		)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(
		w,
		`{"jsonrpc":"2.0","id":%q,"result":{"type":"task","id":%q,"sessionId":"s","status":{"state":%q,"stateChangedAt":%q}`+
			`,"products":[%s]},"error":null}`,
		gjson.GetBytes(h.Body, "id").Str,
		message.Get("taskId").Str,
		state,
		e.since.Format(time.RFC3339Nano),
		products,
	)
}

// acts ends the turn that the agent is at work on.
func (e *early) acts() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since, e.product = time.Now(), "done "+e.said
}

// TestKillAfterEarlyAnswer kills the gateway when its agent has answered a continue and has not acted on it yet. The
// result is not lost, and the agent has the continue once.
func TestKillAfterEarlyAnswer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kills int
		down  bool // the agent acts while the gateway is down
	}{
		"while it is down":      {1, true},
		"when it is up again":   {1, false},
		"after two kills, down": {2, true},
		"after two kills, up":   {2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := new(early)
			agent := site.NewFakeAgent(t, e.answer)
			s := site.New(t)
			c := site.Config{Handle: "aip_gateway aip " + agent.URL}
			s.Start(c)
			l := site.LeaderOf(t, s.URL())
			if got := l.Start("one", "ask"); got.Status.State != task.AwaitingInput {
				t.Fatalf("the start is answered %+v", site.AnswerOf(got))
			}
			if got := l.GoOn("one", "blue"); got.Status.State != task.Working {
				t.Errorf("the continue is answered %+v", site.AnswerOf(got))
			}
			for kill := range tc.kills {
				before := agent.Commanded("", "get")
				site.Eventually(t, "the agent is asked after it has answered",
					func() bool { return agent.Commanded("", "get") > before })
				s.Kill()
				if tc.down && kill == tc.kills-1 {
					e.acts()
				}
				s.Start(c)
				l = site.LeaderOf(t, s.URL())
			}
			if !tc.down {
				if got := l.Get("one"); got.Status.State != task.Working {
					t.Errorf("before the agent acts the task is %+v", site.AnswerOf(got))
				}
				e.acts()
			}
			got := l.Rests("one")
			site.CheckHistory(t, got)
			if diff := cmp.Diff([]string{"done blue"}, site.Product(got)); got.Status.State != task.AwaitingCompletion ||
				diff != "" {
				t.Errorf("the task is %+v: (-want +got)\n%s", site.AnswerOf(got), diff)
			}
			if n := agent.Commanded("", "continue"); n != 1 {
				t.Errorf("the agent has had the continue %d times", n)
			}
			if n := agent.Commanded("", "start"); n != 1 {
				t.Errorf("the agent has had the start %d times", n)
			}
		})
	}
}
