// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// taskless is an agent of A2A without tasks. It answers each message by a Message, or by an error.
type taskless struct {
	version string // of A2A
	refuses int    // the code of the error; 0 for none

	mu    sync.Mutex
	asked []string // the methods
}

func (a *taskless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost { // its card
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	method, id := gjson.GetBytes(body, "method").Str, gjson.GetBytes(body, "id").Raw
	a.mu.Lock()
	a.asked = append(a.asked, method)
	a.mu.Unlock()
	const parts = `"contextId":"theirs","metadata":{"k":1},"referenceTaskIds":["theirs"],"parts":[`
	result := `{"kind":"message","role":"agent","messageId":"its own",` + parts + `{"kind":"text","text":"direct"}]}`
	if a.version == "1.0" {
		result = `{"message":{"role":"ROLE_AGENT","messageId":"its own",` + parts + `{"text":"direct"}]}}`
	}
	answer := `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
	if a.refuses != 0 {
		answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no films"}}`, id, a.refuses)
	}
	if strings.Contains(strings.ToLower(method), "stream") {
		w.Header().Set("Content-Type", "text/event-stream")
		answer = "data: " + answer + "\n\n"
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	io.WriteString(w, answer)
}

// before opens a gateway for callers of all dialects in front of the agent.
func (a *taskless) before(t *testing.T, confirm bool) *gate {
	behind := httptest.NewServer(a)
	t.Cleanup(behind.Close)
	return open(t, func(h *setup) {
		h.Callers = []translate.Server{aip.Server(), a2a.V1Server(confirm), a2a.V1RESTServer(confirm),
			a2a.V03Server(confirm), a2a.V03RESTServer(confirm), a2a.LegacyServer(confirm)}
		h.Agent.Dialect, h.Agent.HTTP.URL = "a2a/"+a.version, behind.URL
		h.Partner.FirstReport = time.Minute // a turn begun before would show a task
	})
}

// The ways for a message to start a task.
var starts = map[string]struct{ path, body string }{
	"1.0": {"", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":` + message10 + `}`},
	"1.0, by a stream": {"", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":` +
		message10 + `}`},
	"REST":              {"/message:send", message10},
	"REST, by a stream": {"/message:stream", message10},
	"0.3":               {"", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":` + message03 + `}`},
	"0.3, by a stream":  {"", `{"jsonrpc":"2.0","id":1,"method":"message/stream","params":` + message03 + `}`},
	"0.3 over REST": {"/v1/message:send", `{"message":{"messageId":"m","contextId":"c","role":"ROLE_USER",` +
		`"content":[{"text":"hello"}]},"configuration":{"blocking":true}}`},
	"v0.1": {"", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t","sessionId":"c",` +
		`"message":{"role":"user","parts":[{"type":"text","text":"hello"}]}}}`},
	"AIP": {"", message("rpc", "start", "t1", "hello")},
}

const (
	message10 = `{"message":{"messageId":"m","contextId":"c","role":"ROLE_USER","parts":[{"text":"hello"}]}}`
	message03 = `{"message":{"kind":"message","messageId":"m","contextId":"c","role":"user",` +
		`"parts":[{"kind":"text","text":"hello"}]}}`
)

// TestMessageWithoutATask: an agent's answer without a task is a Message to callers of the same dialect as the agent,
// and a task to others, and these can also ask for it.
func TestMessageWithoutATask(t *testing.T) {
	const (
		rpc10 = `{"jsonrpc":"2.0","id":1,"result":` + rest10 + `}`
		rpc03 = `{"jsonrpc":"2.0","id":1,"result":{"kind":"message","role":"agent","parts":[{"kind":"text",` +
			`"text":"direct"}],"messageId":"its own","contextId":"c","metadata":{"k":1}}}`
	)
	want := map[string]string{
		"1.0": rpc10, "1.0, by a stream": "data: " + rpc10, "REST": rest10, "REST, by a stream": "data: " + rest10,
		"0.3": rpc03, "0.3, by a stream": "data: " + rpc03,
		"0.3 over REST": strings.Replace(rest10, "parts", "content", 1),
	}
	for _, version := range []string{"1.0", "0.3"} {
		g := (&taskless{version: version}).before(t, false)
		for name, start := range starts {
			_, body := g.post("/agents/one"+start.path, start.body)
			if i := strings.Index(body, "data: "); i >= 0 { // behind the hint when to come back, and the number
				body = strings.TrimRight(body[i:], "\n")
			}
			if want[name] != "" {
				if diff := cmp.Diff(want[name], body); diff != "" {
					t.Errorf("%s at an agent of %s (-want +got):\n%s", name, version, diff)
				}
			} else if !strings.Contains(body, `"direct"`) || !strings.Contains(body, `"status"`) {
				t.Errorf("%s at an agent of %s: got %s", name, version, body)
			}
		}
		_, list := g.request("GET", "/agents/one/tasks?includeArtifacts=true", "", "", "")
		if n := strings.Count(list, `"artifactId":"its own"`); n != 8 {
			t.Errorf("%d tasks are listed:\n%s", n, list)
		}
	}
	g := (&taskless{version: "1.0"}).before(t, true)
	for _, name := range []string{"1.0", "1.0, by a stream", "0.3"} {
		_, body := g.post("/agents/one"+starts[name].path, starts[name].body)
		if !strings.Contains(strings.ToLower(strings.ReplaceAll(body, "_", "-")), "input-required") {
			t.Errorf("%s, to be completed by the caller: got %s", name, body)
		}
	}
}

const rest10 = `{"message":{"messageId":"its own","role":"ROLE_AGENT","parts":[{"text":"direct"}],` +
	`"contextId":"c","metadata":{"k":1}}}`

// TestRefusedMessages: if an agent refuses a message by an error before it has made a task, the error answers the
// message in A2A (1.0 §3.1.1), and leaves no task. The agent is not asked for a task it has not made.
func TestRefusedMessages(t *testing.T) {
	for code, reason := range map[int]string{
		-32005: "CONTENT_TYPE_NOT_SUPPORTED", -32004: "UNSUPPORTED_OPERATION", -32602: "INVALID_PARAMS",
		-32001: "TASK_NOT_FOUND",
	} {
		for _, version := range []string{"1.0", "0.3"} {
			fake := &taskless{version: version, refuses: code}
			g := fake.before(t, false)
			for name, start := range starts {
				fake.asked = nil
				_, body := g.post("/agents/one"+start.path, start.body)
				switch refused := strings.Contains(body, reason) || strings.Contains(body, fmt.Sprint(code)); {
				case !strings.Contains(body, "no films"):
					t.Errorf("%s, %d: got %s", name, code, body)
				case name == "v0.1" || name == "AIP":
					if !strings.Contains(body, `"failed"`) {
						t.Errorf("%s, %d: got %s", name, code, body)
					}
				case !refused || strings.Contains(body, `"status":{`):
					t.Errorf("%s, %d: got %s", name, code, body)
				}
				for _, method := range fake.asked {
					if !strings.HasPrefix(strings.ToLower(method), "send") && !strings.HasPrefix(method, "message/") {
						t.Errorf("%s, %d: the agent is asked %v", name, code, fake.asked)
					}
				}
			}
			_, list := g.request("GET", "/agents/one/tasks", "", "", "")
			if n := strings.Count(list, `"status"`); n != 1 || !strings.Contains(list, `"id":"t"`) { // only the one of v0.1
				t.Errorf("%d: the tasks are %s", code, list)
			}
		}
	}
}
