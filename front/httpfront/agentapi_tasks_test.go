// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// checked is the answer to a question about a submitted request.
type checked struct {
	Status    string
	StartedAt int64 `json:"started_at"`
	Result    *response
	Error     string
}

// check asks about a submitted request.
func (g *gate) check(id string) (c checked) {
	g.t.Helper()
	res, body := g.request("GET", "/agents/one/process/task/"+id, "Accept", "*/*", "")
	if err := json.Unmarshal([]byte(body), &c); err != nil || res.StatusCode != 200 {
		g.t.Fatalf("%d %s: %v", res.StatusCode, body, err)
	}
	return c
}

// submit submits a request, and returns its id.
func (g *gate) submit(text, more string) (id string) {
	g.t.Helper()
	_, body := g.post("/agents/one/process/task", input(text, more))
	var r struct {
		TaskID string `json:"task_id"`
		Status string
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil || r.TaskID == "" || r.Status != "submitted" {
		g.t.Fatalf("a request is submitted: %s", body)
	}
	return r.TaskID
}

// TestAgentAPITasks: a request is submitted, and asked about until it is finished. Its id is the response's.
func TestAgentAPITasks(t *testing.T) {
	works := held{until: agent.Report{State: task.Working, Revision: "1"}, release: make(chan struct{})}
	g := agentAPI(t, func(h *setup) { h.Partner.Agent = works })
	const session = `,"session_id":"s","user_id":"u"`
	id := g.submit("hello", session)
	asynctest.Eventually(t, "the agent works", func() bool { return g.check(id).Status == "running" })
	if c := g.check(id); c.StartedAt == 0 || c.Result != nil {
		t.Errorf("while the agent works: %+v", c)
	}
	if _, body := g.post("/agents/one/process/task", input("more", session)); body !=
		`{"error":"Task u:s is already in RUNNING state."}` {
		t.Errorf("a busy session answers %s", body)
	}
	close(works.release)
	asynctest.Eventually(t, "it is finished", func() bool { return g.check(id).Status == "finished" })
	if r := g.check(id).Result; r.ID != id || r.Status != "completed" || r.SessionID != "s" {
		t.Errorf("the result is %+v", r)
	}
	_, body := g.post("/agents/one/process", input("next", `,"stream":false,"previous_response_id":"`+id+`"`))
	if !strings.Contains(body, `"session_id":"s"`) {
		t.Errorf("it is no response of the session: %s", body)
	}
	for _, unknown := range []string{"x", "response_x_y"} {
		if c := g.check(unknown); c.Error == "" || c.Status != "" {
			t.Errorf("%q is answered with %+v", unknown, c)
		}
	}
}

// TestAgentAPITaskFails: the content of a response is the result, whatever it is.
func TestAgentAPITaskFails(t *testing.T) {
	g := agentAPI(t)
	id := g.submit("fail", "")
	asynctest.Eventually(t, "it is finished", func() bool { return g.check(id).Status == "finished" })
	if r := g.check(id).Result; r.Status != "failed" || r.Error == nil {
		t.Errorf("the result is %+v", r)
	}
}

// TestAgentAPIStop: the turn of a session is stopped by another request, and the session takes the next message.
func TestAgentAPIStop(t *testing.T) {
	works := held{until: agent.Report{State: task.Working, Revision: "1"}, release: make(chan struct{})}
	g := agentAPI(t, func(h *setup) { h.Partner.Agent = works })
	const session = `,"session_id":"s","user_id":"u"`
	stop := func(body string) string {
		t.Helper()
		res, answer := g.post("/agents/one/stop", body)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
			t.Fatalf("a stop is answered with %d %s", res.StatusCode, answer)
		}
		return answer
	}
	const stopped = `{"status":"success","message":"Interrupt signal broadcasted."}`
	if got := stop(`{"input":[]` + session + `}`); got != stopped {
		t.Errorf("a session without a turn answers %s", got)
	}
	first := g.ask(t.Context(), input("hello", session))
	for _, other := range []string{`{"session_id":"s"}`, `{"user_id":"v","session_id":"s"}`} {
		if got := stop(other); got != stopped {
			t.Errorf("%s answers %s", other, got)
		}
	}
	if got := stop(`{"user_id":"u"}`); !strings.Contains(got, "session_id") || !strings.HasPrefix(got, `{"error":"`) {
		t.Errorf("a stop of no session answers %s", got)
	}
	if _, body := g.post("/agents/one/process", input("more", session+`,"stream":false`)); !strings.Contains(body,
		"RUNNING") {
		t.Errorf("the stops of others have ended the turn: %s", body)
	}
	if got := stop(`{"input":[]` + session + `}`); got != stopped {
		t.Errorf("it answers %s", got)
	}
	list := objects(t, first)
	if end := list[len(list)-1]; end.Object != "response" || end.Status != "canceled" {
		t.Errorf("the stream ends with %+v", end)
	}
	close(works.release)
	if _, body := g.post("/agents/one/process", input("more", session+`,"stream":false`)); !strings.Contains(body,
		`"status":"completed"`) {
		t.Errorf("the next message is answered with %s", body)
	}
}
