// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// RuntimeAgent is an agent of the Agent API that behaves as AgentScope Runtime does: a session has one run at a time,
// which continues when its client disconnects; a run that is stopped ends its stream without another event. The first
// word of a message is its command:
//
//	replay NAME      the answer of the real server with this name, but for its session
//	stream N MS      a text in N pieces
//	slow SECONDS     a piece every second
//	ask, approve     a function call, or a request for approval, which the next message answers
//	file, data       a message with a file, or with structured data
//	fail             fails
//
// Anything else is echoed, without the word echo.
type RuntimeAgent struct {
	URL string // of its endpoint

	mu    sync.Mutex
	runs  map[string]chan struct{} // of sessions; closed when the run is to end
	begun []string                 // what runs were begun with
	busy  int                      // requests that a busy session has refused
	ids   int
}

// NewRuntimeAgent serves an agent until the end of the test.
func NewRuntimeAgent(t testing.TB) *RuntimeAgent {
	t.Helper()
	a := &RuntimeAgent{runs: make(map[string]chan struct{})}
	server := httptest.NewServer(a)
	t.Cleanup(func() {
		a.End("")
		server.CloseClientConnections()
		server.Close()
	})
	a.URL = server.URL
	return a
}

// End ends the run of a session, or all runs.
func (a *RuntimeAgent) End(session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, run := range a.runs {
		if session == "" || key == session {
			close(run)
			delete(a.runs, key)
		}
	}
}

// State returns how many runs there are, how many requests were refused as busy, and how often a run was begun with a
// text.
func (a *RuntimeAgent) State(text string) (runs, busy, begun int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.begun {
		if s == text {
			begun++
		}
	}
	return len(a.runs), a.busy, begun
}

// ServeHTTP answers a request to the agent.
func (a *RuntimeAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := gjson.GetBytes(body, "user_id").Str + ":" + gjson.GetBytes(body, "session_id").Str
	switch r.URL.Path {
	case "/stop":
		a.End(key)
		io.WriteString(w, `{"status":"success"}`)
		return
	case "/process":
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	input := gjson.GetBytes(body, "input").Array()
	if len(input) == 0 {
		io.WriteString(w, `data: {"error": "1 validation error for AgentRequest\ninput\n  Field required"}`+"\n\n")
		return
	}
	text := SaidIn(input[len(input)-1])
	run := make(chan struct{})
	a.mu.Lock()
	if a.runs[key] != nil {
		a.busy++
		a.mu.Unlock()
		fmt.Fprintf(w, "data: {\"error\": \"Task %s is already in RUNNING state.\"}\n\n", key)
		return
	}
	a.runs[key] = run
	a.begun = append(a.begun, text)
	a.ids++
	id := strconv.Itoa(a.ids)
	a.mu.Unlock()
	s := &runtimeStream{w: w, run: run, id: id, session: gjson.GetBytes(body, "session_id").Str}
	s.answer(text)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[key] == run {
		delete(a.runs, key)
	}
}

// SaidIn returns what a message says: its first text, or the output or decision in its data.
func SaidIn(m gjson.Result) string {
	c := m.Get("content.0")
	switch m.Get("type").Str {
	case "function_call_output":
		return "answer " + c.Get("data.output").Str
	case "mcp_approval_response":
		return "answer " + c.Get("data.approve").Raw
	}
	return c.Get("text").Str
}

// runtimeStream writes the events of one run.
type runtimeStream struct {
	w           io.Writer
	run         chan struct{}
	n           int // of the next event
	id, session string
}

// stopped waits for a time, and reports whether the run is to end.
func (s *runtimeStream) stopped(d time.Duration) bool {
	select {
	case <-s.run:
		return true
	case <-time.After(d):
		return false
	}
}

// send sends an event that is no error.
func (s *runtimeStream) send(object, status, members string) {
	s.event(object, status, "null", members)
}

// event sends an event. A client that has gone is no reason to stop.
func (s *runtimeStream) event(object, status, failure, members string) {
	fmt.Fprintf(s.w, `data: {"sequence_number":%d,"object":%q,"status":%q,"error":%s,%s}`+"\n\n", s.n, object, status,
		failure, members)
	s.n++
	s.w.(http.Flusher).Flush()
}

func (s *runtimeStream) response(status, output string) {
	s.send("response", status, fmt.Sprintf(`"id":"response_%s","created_at":1795203347,"completed_at":null,"output":%s,`+
		`"usage":null,"session_id":%q`, s.id, output, s.session))
}

// message returns the members of a message behind its error.
func (s *runtimeStream) message(kind, content string) string {
	return fmt.Sprintf(`"id":"msg_%s","type":%q,"role":"assistant","content":%s,"code":null,"message":null,`+
		`"usage":null,"metadata":null`, s.id, kind, content)
}

// content returns the members of a content behind its error.
func (s *runtimeStream) content(kind, delta, value string) string {
	return fmt.Sprintf(`"type":%q,"index":0,"delta":%s,"msg_id":"msg_%s",%s`, kind, delta, s.id, value)
}

// RuntimeCall is the function call by which the agent asks.
const RuntimeCall = `{"arguments":"{}","call_id":"c-1","name":"colour"}`

// recordedSession is the session in an answer of the real server.
var recordedSession = regexp.MustCompile(`"session_id":"s[0-9]"`)

// answer carries a run out.
func (s *runtimeStream) answer(text string) {
	words := append(strings.Fields(text), "", "", "")
	if words[0] == "replay" {
		file, _ := os.ReadFile(filepath.Join("../../../translate/agentapi/testdata", words[1]+".sse"))
		if _, rest, ok := strings.Cut(string(file), "\n\ndata:"); ok && strings.HasPrefix(string(file), "HTTP/") {
			file = []byte("data:" + rest) // a capture with its head
		}
		s.w.Write(recordedSession.ReplaceAll(file, fmt.Appendf(nil, `"session_id":%q`, s.session)))
		return
	}
	s.response("created", "null")
	s.response("in_progress", "null")
	n, _ := strconv.Atoi(words[1])
	pace, _ := strconv.Atoi(words[2])
	switch words[0] {
	case "fail":
		s.event("response", "failed", `{"code":"AGENT_UNKNOWN_ERROR","message":"the agent broke"}`,
			fmt.Sprintf(`"id":"response_%s","output":null`, s.id))
	case "ask":
		s.sends("function_call", s.content("data", "false", `"data":`+RuntimeCall))
	case "approve":
		s.sends("mcp_approval_request", s.content("data", "false",
			`"data":{"id":"a-1","name":"paint","arguments":"{}","server_label":"wall"}`))
	case "file":
		s.sends("message", s.content("file", "false", `"filename":"hello.txt","file_data":"data:text/plain;base64,aGVsbG8K"`))
	case "data":
		s.sends("message", s.content("data", "false", `"data":{"colour":"blue","parts":[1,2,3]}`))
	case "stream":
		var pieces []string
		for i := range n {
			pieces = append(pieces, fmt.Sprintf("chunk-%d ", i))
		}
		s.says(time.Duration(pace)*time.Millisecond, pieces...)
	case "slow":
		s.says(time.Second, strings.SplitAfter(strings.Repeat("tick ", n), " ")...)
	case "answer":
		s.says(0, "you said: ", strings.TrimPrefix(text, "answer "))
	default:
		s.says(0, "echo: ", strings.TrimPrefix(text, "echo "))
	}
}

// says answers by a text in pieces, with a pause before each but the first.
func (s *runtimeStream) says(pause time.Duration, pieces ...string) {
	s.send("message", "in_progress", s.message("message", "null"))
	for i, p := range pieces {
		if i > 0 && s.stopped(pause) {
			return
		}
		s.send("content", "in_progress", s.content("text", "true", `"text":`+Quoted(p)))
	}
	whole := s.content("text", "null", `"text":`+Quoted(strings.Join(pieces, "")))
	s.send("content", "completed", whole)
	s.completes("message", whole)
}

// sends answers by a message with one content.
func (s *runtimeStream) sends(kind, content string) {
	s.send("message", "in_progress", s.message(kind, "null"))
	s.send("content", "completed", content)
	s.completes(kind, content)
}

// completes completes the message and the response.
func (s *runtimeStream) completes(kind, content string) {
	message := s.message(kind, `[{"object":"content","status":"completed","error":null,`+content+`}]`)
	s.send("message", "completed", message)
	s.response("completed", `[{"object":"message","status":"completed","error":null,`+message+`}]`)
}

// Quoted returns a text as a string of JSON.
func Quoted(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}
