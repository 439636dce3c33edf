// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestWildAgentAPI has callers of the Agent API and Leaders of AIP ask agents, all by rule.
func TestWildAgentAPI(t *testing.T) {
	t.Parallel()
	runWild(t, wildAgentAPI)
}

// agentAPIRow is a row of an agent, or of a caller, of the Agent API: what the caller takes for the answer directly, it
// takes for the answer through the gateway, and a Leader has it as a product, and no other ones.
type agentAPIRow struct {
	name, set, notYet string

	sends string                              // members of the caller's request; default: apiInput(wildAsked)
	says  []string                            // what the agent sends behind the response in progress; default: apiAnswer
	reads func(objects []gjson.Result) string // what the caller takes for the answer; default: lastOfOutput
	later bool                                // the caller submits its request, and asks for the response later
	want  wildEnd                             // default: apiDone

	// works are the events of an agent of A2A v0.1 that says the same in its own way. Then the caller asks that, too.
	works []string
	alone bool // it is about the caller alone: there is no Leader
	bare  bool // nothing follows what the agent says: the stream ends without the end of the response
}

// The question to an agent, its answer, and what comes of it.
const wildAsked, wildRains = "weather", "It rains"

var (
	apiAnswer = []string{
		apiMessage("m", "in_progress", "message", "assistant", "null"), apiPiece("m", "It "), apiPiece("m", "rains"),
		apiWhole("m", wildRains), apiMessage("m", "completed", "message", "assistant", apiTexts(wildRains)),
	}
	apiDone = wildEnd{Settled: []string{"completed"}, Products: []string{wildRains}, Told: []string{"user: " + wildAsked}}
)

// apiInput returns the members of a request that says a text.
func apiInput(text string) string {
	return `"input":[{"role":"user","type":"message","content":[{"type":"text","text":` + site.Quoted(text) + `}]}]`
}

// apiMessage returns an object of a message, whose content is JSON.
func apiMessage(id, status, kind, role, content string) string {
	return fmt.Sprintf(`{"object":"message","status":%q,"error":null,"id":%q,"type":%q,"role":%q,"content":%s,`+
		`"code":null,"message":null,"usage":null,"metadata":null}`, status, id, kind, role, content)
}

// apiTexts returns the contents of a message that says one text.
func apiTexts(text string) string {
	return `[{"object":"content","type":"text","text":` + site.Quoted(text) + `}]`
}

// apiPiece returns an object of a piece of a text, which belongs to a message.
func apiPiece(message, text string) string {
	return fmt.Sprintf(`{"object":"content","status":"in_progress","error":null,"type":"text","index":0,"delta":true,`+
		`"msg_id":%q,"text":%s}`, message, site.Quoted(text))
}

// apiWhole returns an object of a text that is complete.
func apiWhole(message, text string) string {
	return fmt.Sprintf(`{"object":"content","status":"completed","error":null,"type":"text","index":0,"delta":null,`+
		`"msg_id":%q,"text":%s}`, message, site.Quoted(text))
}

// apiData returns an object of data that are complete.
func apiData(message, data string) string {
	return fmt.Sprintf(`{"object":"content","status":"completed","error":null,"type":"data","index":0,"delta":false,`+
		`"msg_id":%q,"data":%s}`, message, data)
}

func (r agentAPIRow) row() wildRow {
	if r.sends == "" {
		r.sends = apiInput(wildAsked)
	}
	if r.says == nil {
		r.says = apiAnswer
	}
	if r.reads == nil {
		r.reads = lastOfOutput
	}
	if r.want.Settled == nil {
		r.want = apiDone
	}
	const callers = "aip aip/2 agentapi"
	ways := []wildWay{
		{name: "a caller, directly", serve: r.serve, call: r.ask},
		{name: "a caller", serve: r.serve, through: true, callers: callers, call: r.ask},
	}
	if r.works != nil {
		ways = append(ways, wildWay{name: "a caller, of an agent of A2A", serve: r.serveLegacy, through: true,
			callers: callers, call: r.ask})
	}
	if !r.alone {
		ways = append(ways, wildWay{name: "a Leader", serve: r.serve, through: true, callers: callers, call: r.lead})
	}
	return wildRow{name: r.name, set: r.set, notYet: r.notYet, want: r.want, ways: ways}
}

// serve serves the agent of the Agent API.
func (r agentAPIRow) serve(t *testing.T) *wildServed {
	var mu sync.Mutex
	var told []string
	process := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		v := gjson.ParseBytes(body)
		mu.Lock()
		v.Get("input").ForEach(func(_, m gjson.Result) bool {
			told = append(told, cmp.Or(m.Get("role").Str, "user")+": "+site.SaidIn(m))
			return true
		})
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		n := 0
		send := func(line string) {
			if rest, ok := strings.CutPrefix(line, "{"); ok {
				line = fmt.Sprintf(`{"sequence_number":%d,%s`, n, rest)
			}
			n++
			fmt.Fprintf(w, "data: %s\n\n", line)
			w.(http.Flusher).Flush()
		}
		response := func(status, output string) string {
			return fmt.Sprintf(`{"object":"response","status":%q,"error":null,"id":"response_r","created_at":1795203347,`+
				`"completed_at":null,"output":%s,"usage":null,"session_id":%s}`, status, output, v.Get("session_id").Raw)
		}
		send(response("created", "null"))
		send(response("in_progress", "null"))
		var output []string
		for _, line := range r.says {
			send(line)
			if m := gjson.Parse(line); m.Get("object").Str == "message" && m.Get("status").Str == "completed" {
				output = append(output, line)
			}
		}
		if last := r.says[len(r.says)-1]; !r.bare && gjson.Get(last, "object").Str != "response" {
			send(response("completed", "["+strings.Join(output, ",")+"]"))
		}
	})
	server := httptest.NewServer(tasksOf(process))
	t.Cleanup(server.Close)
	at := server.URL + "/process"
	return &wildServed{at: server.URL, as: "agentapi " + at, told: func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), told...)
	}}
}

// tasksOf serves, beside a process, the tasks of the runtime: of each, only the last object is kept.
func tasksOf(process http.Handler) http.Handler {
	mux := http.NewServeMux()
	var results sync.Map
	mux.Handle("POST /process", process)
	mux.HandleFunc("POST /process/task", func(w http.ResponseWriter, q *http.Request) {
		all := httptest.NewRecorder()
		process.ServeHTTP(all, q)
		objects := strings.Split(strings.TrimSpace(all.Body.String()), "data: ")
		id := fmt.Sprint(len(objects), "-", len(all.Body.String()))
		results.Store(id, objects[len(objects)-1])
		fmt.Fprintf(w, `{"task_id":%q,"status":"submitted","queue":"stream_query","message":"submitted"}`, id)
	})
	mux.HandleFunc("GET /process/task/{id}", func(w http.ResponseWriter, q *http.Request) {
		if result, ok := results.Load(q.PathValue("id")); ok {
			fmt.Fprintf(w, `{"status":"finished","result":%s}`, result)
			return
		}
		fmt.Fprintf(w, `{"error":"Task %s not found"}`, q.PathValue("id"))
	})
	return mux
}

// serveLegacy serves the agent of A2A.
func (r agentAPIRow) serveLegacy(t *testing.T) *wildServed {
	agent := site.NewFakeAgent(t, legacyWrites("", "", r.works...))
	return &wildServed{as: "a2a/legacy " + agent.URL, told: func() (told []string) {
		for _, h := range agent.Requests("tasks/sendSubscribe") {
			told = append(told, "user: "+h.Params.Message.Parts[0].Text)
		}
		return told
	}}
}

// ask asks as the caller does, and takes what it takes.
func (r agentAPIRow) ask(t *testing.T, at string) (end wildEnd) {
	l := newWildLeader(t, at)
	asks := askObjects
	if r.later {
		asks = askLater
	}
	objects, err := asks(t, l, at, fmt.Sprintf(`{%s,"session_id":%q,"user_id":"u"}`, r.sends, l.task))
	if err != nil {
		return wildEnd{Broken: err.Error()}
	}
	last := objects[len(objects)-1]
	end.Settled = []string{last.Get("status").Str}
	if text := r.reads(objects); text != "" {
		end.Products = []string{text}
	}
	if why := last.Get("error.message").Str; why != "" {
		end.Said = []string{why}
	}
	return end
}

// askObjects sends a request, and returns the objects of its stream.
func askObjects(_ *testing.T, l *wildLeader, at, body string) (objects []gjson.Result, err error) {
	res, err := l.web.Do(site.JSONRequest("POST", at+"/process", body).WithContext(l.ctx))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			objects = append(objects, gjson.Parse(data))
		}
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("the answer is HTTP %d, without objects", res.StatusCode)
	}
	return objects, nil
}

// askLater submits a request, asks until it is finished, and returns the response.
func askLater(t *testing.T, l *wildLeader, at, body string) ([]gjson.Result, error) {
	do := func(q *http.Request) (gjson.Result, error) {
		res, err := l.web.Do(q.WithContext(l.ctx))
		if err != nil {
			return gjson.Result{}, err
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		return gjson.ParseBytes(answer), err
	}
	submitted, err := do(site.JSONRequest("POST", at+"/process/task", body))
	if err != nil {
		return nil, err
	}
	var now gjson.Result
	site.Eventually(t, "the task is finished", func() bool {
		q, _ := http.NewRequest("GET", at+"/process/task/"+submitted.Get("task_id").Str, http.NoBody)
		now, err = do(q)
		return err != nil || now.Get("status").Str == "finished"
	})
	return []gjson.Result{now.Get("result")}, err
}

// lead has a Leader of AIP ask by a stream.
func (r agentAPIRow) lead(t *testing.T, at string) wildEnd {
	l := newWildLeader(t, at)
	if err := l.settledBy(l.stream("start", wildAsked, nil)); err != nil {
		l.end.Broken = err.Error()
	}
	for i, state := range l.end.Settled {
		l.end.Settled[i] = cmp.Or(map[string]string{"awaiting-completion": "completed"}[state], state)
	}
	return l.end
}

// lastOfOutput takes the texts of the last message of the last response, of whatever type that is.
func lastOfOutput(objects []gjson.Result) string {
	output := objects[len(objects)-1].Get("output").Array()
	if len(output) == 0 {
		return ""
	}
	return textsIn(output[len(output)-1])
}

// lastOfType takes the texts of the last message of type message that is complete.
func lastOfType(objects []gjson.Result) (text string) {
	for _, o := range objects {
		if o.Get("object").Str == "message" && o.Get("type").Str == "message" && o.Get("status").Str == "completed" {
			text = textsIn(o)
		}
	}
	return text
}

// lastWhole takes the last text that is complete.
func lastWhole(objects []gjson.Result) (text string) {
	for _, o := range objects {
		if o.Get("object").Str == "content" && o.Get("status").Str == "completed" && o.Get("type").Str == "text" {
			text = o.Get("text").Str
		}
	}
	return text
}

// pieced adds pieces of texts, and takes each whole text for all of it.
func pieced(objects []gjson.Result) (text string) {
	for _, o := range objects {
		switch {
		case o.Get("object").Str != "content" || o.Get("type").Str != "text":
		case o.Get("delta").Bool():
			text += o.Get("text").Str
		default:
			text = o.Get("text").Str
		}
	}
	return text
}

// untilAllComplete stops where all messages that it has seen are complete, and takes the last one of these.
func untilAllComplete(objects []gjson.Result) string {
	open := make(map[string]bool)
	for _, o := range objects {
		switch {
		case o.Get("object").Str != "message":
		case o.Get("status").Str != "completed":
			open[o.Get("id").Str] = true
		default:
			if delete(open, o.Get("id").Str); len(open) == 0 {
				return textsIn(o)
			}
		}
	}
	return ""
}

// textsIn returns the texts of a message.
func textsIn(message gjson.Result) (text string) {
	message.Get("content").ForEach(func(_, c gjson.Result) bool {
		text += c.Get("text").Str
		return true
	})
	return text
}

// with takes the last message, and what the last response has beside it.
func with(path string) func(objects []gjson.Result) string {
	return func(objects []gjson.Result) string {
		return objects[len(objects)-1].Get(path).String() + ": " + lastOfOutput(objects)
	}
}

// apiEnds returns the answer, and behind it the end of the response, with the answer in its output.
func apiEnds(status, members string) []string {
	end := fmt.Sprintf(`{"object":"response","status":%q,"id":"response_r","created_at":1795203347,"completed_at":null,`+
		`"output":[%s],%s}`, status, apiAnswer[len(apiAnswer)-1], members)
	return append(slices.Clone(apiAnswer), end)
}

// What a tool is given, and what it returns.
const (
	apiCall   = `{"call_id":"c","name":"weather","arguments":"{}"}`
	apiOutput = `{"call_id":"c","name":"weather","output":"secret"}`
)

// apiLangGraph is what LangGraph's adapter sends: the user's and the system's message again, and a tool's data before
// their messages.
var apiLangGraph = append([]string{
	apiMessage("u", "in_progress", "message", "user", "null"), apiPiece("u", wildAsked),
	apiMessage("u", "completed", "message", "user", apiTexts(wildAsked)),
	apiMessage("s", "in_progress", "message", "system", "null"), apiPiece("s", "be brief"), apiData("p", apiCall),
	apiMessage("p", "completed", "plugin_call", "assistant", `[{"type":"data","data":`+apiCall+`}]`),
	apiMessage("t", "in_progress", "message", "tool", "null"), apiData("o", apiOutput),
	apiMessage("o", "completed", "plugin_call_output", "tool", `[{"type":"data","data":`+apiOutput+`}]`),
}, apiAnswer...)

var wildAgentAPI = []wildRow{
	agentAPIRow{
		name: "sends a tool's data before their messages, and the user's message again, as LangGraph's adapter does",
		says: apiLangGraph,
	}.row(),
	agentAPIRow{
		name: "sends the same, and its tools are shown in statuses",
		set:  "agent {\n\t\t\texpose status\n\t\t}",
		says: apiLangGraph,
	}.row(),
	agentAPIRow{
		name: "sends pieces before their message, as the framework `text` does",
		says: apiAnswer[1:],
	}.row(),
	agentAPIRow{
		name: "has a name of its own for the session",
		says: append([]string{`{"object":"response","status":"in_progress","id":"response_r","session_id":"mine-1"}`},
			apiAnswer...),
	}.row(),
	agentAPIRow{
		name: "ends its stream behind its answer, without the end of the response",
		bare: true, reads: lastOfType,
	}.row(),
	agentAPIRow{
		name: "fails behind a part of its answer, with a code of its own", alone: true, reads: with("error.code"),
		says: apiEnds("failed", `"usage":null,"error":{"code":"MODEL_QUOTA_EXCEEDED","message":"no more tokens"}`),
		want: wildEnd{Settled: []string{"failed"}, Products: []string{"MODEL_QUOTA_EXCEEDED: " + wildRains},
			Said: []string{"no more tokens"}, Told: apiDone.Told},
	}.row(),
	agentAPIRow{
		name: "rejects what it has begun", alone: true,
		says: apiEnds("rejected", `"usage":null,"error":{"code":"REQUEST_REJECTED","message":"not now"}`),
		want: wildEnd{Settled: []string{"rejected"}, Products: apiDone.Products, Said: []string{"not now"},
			Told: apiDone.Told},
	}.row(),
	agentAPIRow{
		name: "a caller that counts tokens", alone: true, reads: with("usage.input_tokens"),
		says: apiEnds("completed", `"error":null,"usage":{"input_tokens":11}`),
		want: wildEnd{Settled: apiDone.Settled, Products: []string{"11: " + wildRains}, Told: apiDone.Told},
	}.row(),
	agentAPIRow{
		name: "a caller that sends the whole conversation, with a system prompt, as the WebUI of AgentScope Runtime may",
		sends: `"input":[{"role":"system","content":[{"type":"text","text":"be brief"}]},` +
			`{"role":"user","content":[{"type":"text","text":"hello"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"hi"}]},` +
			`{"role":"user","content":[{"type":"text","text":"weather"}]}]`,
		alone: true,
		want: wildEnd{Settled: apiDone.Settled, Products: apiDone.Products,
			Told: []string{"system: be brief", "user: hello", "assistant: hi", "user: weather"}},
	}.row(),
	agentAPIRow{
		name: "a caller that sends values in other forms: a text that is null, `stream` as a word, any `temperature`",
		sends: `"input":[{"role":"user","content":[{"type":"text","text":"weather"},{"type":"text","text":null}]}],` +
			`"stream":"true","temperature":3,"max_tokens":0`,
		alone: true,
	}.row(),
	apiReader("a caller that reads the last message of the `output`, as QwenPaw's tool does", lastOfOutput),
	apiReader("a caller that reads the last complete message of type `message`", lastOfType),
	apiReader("a caller that reads the last complete text", lastWhole),
	apiReader("a caller that adds pieces, and takes a whole text in their place", pieced),
	apiReader("a caller that stops where all messages are complete, as the WebUI of AgentScope Runtime does",
		untilAllComplete),
	agentAPIRow{
		name:  "a caller that submits its message, and asks until it is finished, as QwenPaw's task runner does",
		later: true, alone: true, works: []string{legacyResponse(`{"id":"ID","final":true,"status":{"state":"completed"},` +
			`"artifacts":[{"index":0,"parts":[{"type":"text","text":"` + wildRains + `"}]}]}`)},
	}.row(),
}

// apiReader is a row of a caller that takes the answer in its own way. The agents say what they do, and answer. That of
// A2A says, too, that it is done.
func apiReader(name string, reads func([]gjson.Result) string) wildRow {
	const status = `{"id":"ID","final":%t,"status":{"state":%q,"message":{"role":"agent",` +
		`"parts":[{"type":"text","text":%q}]}}}`
	return agentAPIRow{name: name, reads: reads, alone: true,
		says: []string{
			apiMessage("r", "in_progress", "reasoning", "assistant", "null"), apiPiece("r", "step 1"),
			apiMessage("m", "in_progress", "message", "assistant", "null"), apiWhole("r", "step 1"),
			apiMessage("r", "completed", "reasoning", "assistant", apiTexts("step 1")),
			apiPiece("m", wildRains), apiWhole("m", wildRains),
			apiMessage("m", "completed", "message", "assistant", apiTexts(wildRains)),
		},
		works: []string{
			legacyResponse(fmt.Sprintf(status, false, "working", "step 1")),
			legacyResponse(fmt.Sprintf(status, false, "working", "step 2")),
			legacyResponse(`{"id":"ID","artifact":{"index":0,"lastChunk":true,"parts":` +
				`[{"type":"text","text":"It rains"}]}}`),
			legacyResponse(fmt.Sprintf(status, true, "completed", "Done.")),
		},
	}.row()
}
