// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// response is an object of the Agent API, as far as these tests read it.
type response struct {
	Sequence  *int `json:"sequence_number"`
	Object    string
	ID        string
	Status    string
	Type      string
	Delta     *bool
	Text      string
	SessionID string `json:"session_id"`
	Error     any
	Detail    any
	Output    []struct {
		Content []struct{ Text string }
	}
}

// said returns the text of the output.
func (r *response) said() (text string) {
	for _, m := range r.Output {
		for _, c := range m.Content {
			text += c.Text
		}
	}
	return text
}

func agentAPI(t *testing.T, change ...func(*setup)) *gate {
	return open(t, append([]func(*setup){func(h *setup) {
		h.Callers = []translate.Server{aip.Server(), agentapi.Server(false)}
	}}, change...)...)
}

// ask sends a request to the Agent API.
func (g *gate) ask(ctx context.Context, body string) *http.Response {
	g.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", g.server.URL+"/agents/one/process", strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := g.server.Client().Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	return res
}

// objects reads a stream to its end. The stream has nothing but lines of data.
func objects(t *testing.T, res *http.Response) (list []response) {
	t.Helper()
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the stream has the type %q", got)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			if lines.Text() != "" {
				t.Errorf("the stream has the line %q", lines.Text())
			}
			continue
		}
		var r response
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		list = append(list, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func input(text, more string) string {
	return fmt.Sprintf(`{"input":[{"role":"user","type":"message","content":[{"type":"text","text":%q}]}]%s}`, text, more)
}

// TestAgentAPI: an echo, in the order of the server of the Agent API, and with the numbers of the objects in one row.
func TestAgentAPI(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*setup)) {
		g := agentAPI(t, way)
		var order []string
		list := objects(t, g.ask(t.Context(), input("stream 3 20", `,"session_id":"s"`)))
		for i, r := range list {
			if r.Sequence == nil || *r.Sequence != i {
				t.Errorf("object %d has another number: %v", i, r.Sequence)
			}
			one := r.Object + " " + r.Status
			if r.Delta != nil {
				one += " delta"
			}
			order = append(order, one)
		}
		want := []string{"response created", "response in_progress", "message in_progress", "content in_progress delta",
			"content in_progress delta", "content in_progress delta",
			"message in_progress", "content completed", "message completed", // "streamed"
			"content completed", "message completed", "response completed"}
		if d := cmp.Diff(want, order); d != "" {
			t.Errorf("the order of the objects (-want +got):\n%s", d)
		}
		if end := list[len(list)-1]; end.SessionID != "s" || end.said() != "streamed"+list[9].Text {
			t.Errorf("the last response is %+v", end)
		}
	})
}

// TestAgentAPIWithoutStream: the whole response at once, and the next message of the session.
func TestAgentAPIWithoutStream(t *testing.T) {
	g := agentAPI(t)
	for i, text := range []string{"hello", "ask", "red"} {
		res, body := g.post("/agents/one/process", input(text, `,"session_id":"s","user_id":"u","stream":false`))
		var r response
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		if res.Header.Get("Content-Type") != "application/json" || r.Status != "completed" || r.SessionID != "s" {
			t.Errorf("message %d is answered with %s", i, body)
		}
		if text != "ask" && !strings.Contains(r.said(), text) {
			t.Errorf("message %d is answered with %q", i, r.said())
		}
	}
}

// TestAgentAPIPreviousResponse: the id of a response is a name of its session.
func TestAgentAPIPreviousResponse(t *testing.T) {
	g := agentAPI(t)
	var first, second, other response
	for _, step := range []struct {
		more string
		into *response
	}{{"", &first}, {`,"previous_response_id":"$"`, &second}, {"", &other}} {
		more := strings.ReplaceAll(step.more, "$", first.ID) + `,"stream":false`
		_, body := g.post("/agents/one/process", input("hello", more))
		if err := json.Unmarshal([]byte(body), step.into); err != nil {
			t.Fatal(err)
		}
	}
	if first.SessionID == "" || second.SessionID != first.SessionID || other.SessionID == first.SessionID {
		t.Errorf("the sessions are %q, %q and %q", first.SessionID, second.SessionID, other.SessionID)
	}
	if first.ID == "" || first.ID == second.ID {
		t.Errorf("the responses are %q and %q", first.ID, second.ID)
	}
	for _, unknown := range []string{"response_x_y", "x", first.ID[:len(first.ID)-30] + "aa_b"} {
		_, body := g.post("/agents/one/process", input("hello", `,"stream":false,"previous_response_id":"`+unknown+`"`))
		if !strings.HasPrefix(body, `{"error":"`) {
			t.Errorf("the unknown response %q is answered with %s", unknown, body)
		}
	}
}

// TestAgentAPIPreviousResponseOfAnother: the id of a response is no way into the conversation of another user.
func TestAgentAPIPreviousResponseOfAnother(t *testing.T) {
	g := agentAPI(t)
	ask := func(text, more string) (r response, body string) {
		t.Helper()
		_, body = g.post("/agents/one/process", input(text, more+`,"stream":false`))
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		return r, body
	}
	question, _ := ask("ask", `,"user_id":"ann","session_id":"tea"`)
	previous := `,"previous_response_id":"` + question.ID + `"`
	_, unknown := ask("blue", `,"previous_response_id":"response_none_none","user_id":"bob"`)
	for _, other := range []string{`,"user_id":"bob"`, `,"session_id":"coffee"`, `,"user_id":"bob","session_id":"tea"`} {
		if r, body := ask("blue", previous+other); r.Error == nil || r.Status != "" || body != unknown {
			t.Errorf("with %s, the question is answered: %s; one to an unknown response %s", other, body, unknown)
		}
	}
	if answer, body := ask("red", previous+`,"user_id":"ann"`); !strings.Contains(answer.said(), "you said: red") ||
		answer.SessionID != "tea" {
		t.Errorf("her own answer is answered with %s", body)
	}
}

// TestAgentAPIContentType: a body of another media type is refused as the framework refuses it.
func TestAgentAPIContentType(t *testing.T) {
	g := agentAPI(t)
	for media, want := range map[string]int{"application/json; charset=utf-8": 200, "application/problem+json": 200,
		"": 200, "text/plain": 422, "application/x-www-form-urlencoded": 422, "application/octet-stream": 422} {
		res, err := g.server.Client().Post(g.server.URL+"/agents/one/process", media,
			strings.NewReader(input("hello", `,"stream":false`)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		refused := strings.HasPrefix(string(body), `{"detail":[{"type":"dict_type"`)
		if err != nil || res.StatusCode != want || refused != (want == 422) {
			t.Errorf("%q: answered with %d and %s, %v", media, res.StatusCode, body, err)
		}
	}
	if _, body := g.request("POST", "/agents/one/process", "Content-Type", "text/plain", "{"); !strings.Contains(body,
		"dict_type") {
		t.Errorf("the media type is not looked at first: %s", body)
	}
}

// TestAgentAPIByteOrderMark: a body may begin with a byte order mark, as for the framework.
func TestAgentAPIByteOrderMark(t *testing.T) {
	g := agentAPI(t)
	const mark = "\xef\xbb\xbf"
	if res, body := g.request("POST", "/agents/one/process", "Content-Type", "application/json",
		mark+input("hello", `,"stream":false`)); res.StatusCode != 200 || !strings.Contains(body, `"status":"completed"`) {
		t.Errorf("it is answered with %d and %s", res.StatusCode, body)
	}
	if _, body := g.request("POST", "/agents/one/process", "Content-Type", "application/json", mark+mark+"{}"); !strings.
		Contains(body, "json_invalid") {
		t.Errorf("two of them are answered with %s", body)
	}
}

// held is an agent not finishing before its release.
type held struct {
	partner.Agent
	until   agent.Report // its reports before
	release chan struct{}
}

func (a held) Run(ctx context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if !yield(a.until, nil) {
			return
		}
		select {
		case <-a.release:
			yield(agent.Report{State: task.AwaitingCompletion, Revision: "2"}, nil)
		case <-ctx.Done():
		}
	}
}

func (held) Complete(context.Context, *agent.Turn) error { return nil }

func (held) Cancel(context.Context, *agent.Turn) (agent.Report, error) { return agent.Report{}, nil }

// TestAgentAPIBusy: the session takes one message at a time, and a leaving caller does not end it.
func TestAgentAPIBusy(t *testing.T) {
	works := held{until: agent.Report{State: task.Working, Revision: "1"}, release: make(chan struct{})}
	g := agentAPI(t, func(h *setup) { h.Partner.Agent = works })
	const session = `,"session_id":"s","user_id":"u"`
	ctx, leave := context.WithCancel(t.Context())
	first := g.ask(ctx, input("hello", session))
	const busy = `{"error":"Task u:s is already in RUNNING state."}`
	res := g.ask(t.Context(), input("hello", session))
	if got := objects(t, res); len(got) != 1 || got[0].Error != "Task u:s is already in RUNNING state." {
		t.Errorf("a busy session answers %+v", got)
	}
	leave()
	first.Body.Close()
	if _, body := g.post("/agents/one/process", input("hello", session+`,"stream":false`)); body != busy {
		t.Errorf("when the caller has left, the session answers %s", body)
	}
	close(works.release)
	asynctest.Eventually(t, "the session takes the next message", func() bool {
		_, body := g.post("/agents/one/process", input("hello", session+`,"stream":false`))
		return strings.Contains(body, `"status":"completed"`)
	})
}

// TestAgentAPIErrors: errors have the forms and statuses of the server of the Agent API.
func TestAgentAPIErrors(t *testing.T) {
	g := agentAPI(t)
	for name, tt := range map[string]struct {
		body   string
		status int
		kind   string
		want   string
	}{
		"not JSON": {"{", 422, "application/json", `{"detail":[{"type":"json_invalid","loc":["body"],` +
			`"msg":"JSON decode error","ctx":{"error":`},
		"no object": {"[]", 422, "application/json", `{"detail":[{"type":"dict_type","loc":["body"],` +
			`"msg":"Input should be a valid dictionary"`},
		"a wrong type": {`{"input":{}}`, 422, "application/json", `{"detail":[{"type":"list_type","loc":["body","input"],` +
			`"msg":"Input should be a valid list"`},
		"twice": {`{"input":[],"input":[]}`, 422, "application/json", `{"detail":[{"type":"dict_type",` +
			`"loc":["body","input"]`},
		"no input": {`{"session_id":"x"}`, 200, "text/event-stream",
			`data: {"error":"1 validation error for AgentRequest\ninput\n  Field required"}` + "\n\n"},
		"no input, no stream": {`{"session_id":"x","stream":false}`, 200, "application/json",
			`{"error":"1 validation error for AgentRequest\ninput\n  Field required"}`},
		"a type": {`{"input":[{"role":"user","content":[{"type":"hologram"}]}]}`, 200, "text/event-stream",
			`data: {"error":"1 validation error for AgentRequest\ninput.0.content.0.type\n  `},
	} {
		res, body := g.post("/agents/one/process", tt.body)
		if res.StatusCode != tt.status || res.Header.Get("Content-Type") != tt.kind || !strings.HasPrefix(body, tt.want) {
			t.Errorf("%s: answered with %d, %s and %s", name, res.StatusCode, res.Header.Get("Content-Type"), body)
		}
	}
	res, err := g.server.Client().Get(g.server.URL + "/agents/one/process")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 405 || res.Header.Get("Allow") != "POST" {
		t.Errorf("GET is answered with %d", res.StatusCode)
	}
}

// TestAgentAPIAfterReload: a stream without a way to resume it is not cut when the configuration is replaced.
func TestAgentAPIAfterReload(t *testing.T) {
	g := agentAPI(t)
	res := g.ask(t.Context(), input("stream 15 20", `,"session_id":"s"`))
	g.drain()
	list := objects(t, res)
	if end := list[len(list)-1]; end.Object != "response" || end.Status != "completed" {
		t.Errorf("the stream ends with %+v", end)
	}
}

// TestAgentAPIAtAnExit: when the process is about to end, the stream ends with an error.
func TestAgentAPIAtAnExit(t *testing.T) {
	exiting, exit := context.WithCancel(t.Context())
	g := agentAPI(t, func(h *setup) { h.Streaming.Exit = exiting })
	res := g.ask(t.Context(), input("slow 60", `,"session_id":"s"`))
	exit()
	list := objects(t, res)
	if end := list[len(list)-1]; end.Object != "" || end.Error == nil {
		t.Errorf("the stream ends with %+v", end)
	}
	asynctest.Eventually(t, "the stream is closed", func() bool { return g.streams() == 0 })
}

// TestAgentAPIAtTheMountPoint: if no other dialect is served, the mount point's own path belongs to the Agent API.
func TestAgentAPIAtTheMountPoint(t *testing.T) {
	g := agentAPI(t, func(h *setup) { h.Callers = []translate.Server{agentapi.Server(false)} })
	_, body := g.post("/agents/one", input("hello", `,"stream":false`))
	if !strings.Contains(body, `"status":"completed"`) {
		t.Errorf("it answers %s", body)
	}
}
