// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestDrainMode drains a gateway: new tasks are refused in every dialect, an agent may finish its turn, which caddy aip
// drain --wait waits for, and what waits for its Leader continues, then and after an upgrade.
func TestDrainMode(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		state := "completed"
		switch text := string(h.Body); {
		case strings.Contains(text, "ask me"):
			state = "input-required"
		case strings.Contains(text, "take your time"):
			select {
			case <-finish:
			case <-r.Context().Done():
			}
		}
		site.WriteTask(w, h, state, "done")
	})
	s := site.Serve(t,
		site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL + " {\ncallers aip a2a/0.3 a2a/1.0 agentapi\n}"})
	s.Awake()
	drainCommand := func(want int, args ...string) string {
		t.Helper()
		stdout, stderr := s.LiveCommand(want, append([]string{"drain"}, args...)...)
		return stdout + stderr
	}
	leader := site.LeaderOf(t, s.URL())
	leader.Start("asks", "ask me")
	answered := make(chan *task.Task, 1)
	slow := site.StartCall("slow", "take your time")
	slow.Terms.Response = 5 * site.Patience // in which the agent may finish
	go func() {
		got, err := leader.Try(slow)
		if err != nil {
			t.Errorf("the start that waits: %v", site.Explain(err))
		}
		answered <- got
	}()
	site.Eventually(t, "the agent works on the task", func() bool { return len(agent.Requests("tasks/send")) == 2 })

	if got := drainCommand(0); got != "new tasks are refused; agents work on 1 tasks, and 1 wait for their Leaders\n" {
		t.Errorf("drain prints %q", got)
	}
	if got := leader.Refused(site.StartCall("new", "hello")); got.Code != -32050 ||
		site.Data(t, got.Data)["limit"] != "drain" {
		t.Errorf("a start is answered with %d %s", got.Code, got.Data)
	}
	const message = `{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}]}`
	const message1 = `{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}`
	for name, tc := range map[string]struct {
		path, body string
		header     []string
		status     int
		want       string // in the answer
	}{
		"AIP": {"/rpc", `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"type":"message","id":"m","sentAt":` +
			`"2026-11-22T10:00:00Z","senderRole":"leader","senderId":"` + leader.Sender + `","command":"start","taskId":"n",` +
			`"dataItems":[{"type":"text","text":"x"}]}}}`, nil, 200, `"limit":"drain"`},
		"A2A 0.3": {"", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":` + message + `}}`,
			nil, 200, "-32050"},
		"A2A 1.0": {"", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` + message1 + `}}`,
			[]string{"A2A-Version", "1.0"}, 200, "drain"},
		"A2A 1.0, HTTP": {"/message:send", `{"message":` + message1 + `}`, []string{"A2A-Version", "1.0"}, 429, "drain"},
		"Agent API": {"/process", `{"session_id":"s","input":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`,
			nil, 429, "maintenance"},
	} {
		res, body := leader.Post(tc.path, []byte(tc.body), tc.header...)
		if res.StatusCode != tc.status || !strings.Contains(string(body), tc.want) {
			t.Errorf("%s is answered with %d %s", name, res.StatusCode, body)
		}
	}
	if n := len(agent.Requests("tasks/send")); n != 2 {
		t.Errorf("the agent has got %d messages", n)
	}
	status, body := s.Asked("GET", "/aip/health/ready", "")
	if status != http.StatusServiceUnavailable || !strings.Contains(string(body), "the operator drains the gateway") {
		t.Errorf("ready is answered with %d %s", status, body)
	}
	if got := drainCommand(1, "--wait", "--timeout", "1ms"); !strings.Contains(got, "agents still work on 1 tasks") {
		t.Errorf("drain --wait prints %q", got)
	}

	// What is there continues.
	if got := leader.GoOn("asks", "an answer"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("a continue is answered with %s", got.Status.State)
	}
	leader.Complete("asks")
	close(finish)
	if got := drainCommand(0, "--wait"); !strings.Contains(got, "agents work on 0 tasks, and 1 wait") {
		t.Errorf("drain --wait prints %q", got)
	}
	if got := <-answered; got == nil || got.Status.State != task.AwaitingCompletion {
		t.Errorf("the start is answered with %+v", got)
	}
	if _, body := s.Asked("GET", "/aip/drain", ""); !gjson.GetBytes(body, "draining").Bool() ||
		gjson.GetBytes(body, "unfinished").Int() != 1 {
		t.Errorf("the state is %s", body)
	}
	if got := drainCommand(0, "--end", "--json"); !strings.HasPrefix(got, `{"draining":false,"running":0,`) {
		t.Errorf("drain --end prints %q", got)
	}
	leader.Start("new", "hello")
	drainCommand(0)
	s.Stop(t)
	s.Run(s.Dir + "/Caddyfile") // the new binary
	leader.Start("newer", "hello")
}
