// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// TestConversations: each pair of a user_id and a session_id has a name of its own. Both can be read from it.
func TestConversations(t *testing.T) {
	names := make(map[string][2]string)
	ids := []string{"a", "b", "a/b", "/", "//", "a%2Fb", "%", "é", "a b"}
	for _, user := range ids {
		for _, session := range ids {
			name := conversation(user, session)
			if other, twice := names[name]; twice {
				t.Errorf("%q is the name of %q and of %q", name, other, [2]string{user, session})
			}
			names[name] = [2]string{user, session}
			if u, s := userAndSession(name); u != user || s != session {
				t.Errorf("%q and %q come back as %q and %q", user, session, u, s)
			}
		}
	}
	if u, s := userAndSession("%zz/x"); u != "%zz/x" || s != u {
		t.Errorf("a name of another dialect is read as %q and %q", u, s)
	}
}

// TestDecodeSession tests the session of a request, and the id of its response.
func TestDecodeSession(t *testing.T) {
	for body, want := range map[string]translate.Call{
		`{"input":[]}`: {Stream: true},
		`{"input":[],"session_id":"s","user_id":"u","stream":false,"id":"r"}`: {Blocking: true, AnswerID: "r"},
		`{"input":[],"session_id":"s","response_id":"r"}`:                     {Stream: true, AnswerID: "r"},
		`{"input":[],"session_id":7,"user_id":-8,"id":9,"stream":"False"}`:    {Blocking: true, AnswerID: "9"},
		`{"input":[],"session_id":"s","stream":"true"}`:                       {Stream: true},
		`{"input":[],"session_id":"s","stream":0}`:                            {Blocking: true},
		`{"input":[],"user_id":"u","stream":true,"id":null}`:                  {Stream: true},
		`{"input":[],"previous_response_id":"response_t_1_m"}`:                {Stream: true, SessionOf: "t_1"},
		`{"input":[],"previous_response_id":"response_t_m","session_id":"s","user_id":"s"}`: {
			Stream: true, SessionOf: "t"},
		`{"input":[],"previous_response_id":"response_t_m","user_id":"u"}`:    {Stream: true, SessionOf: "t"},
		`{"input":[],"previous_response_id":"response_t_m","session_id":"s"}`: {Stream: true, SessionOf: "t"},
	} {
		got, err := decode(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		session := map[string]string{
			`{"input":[]}`: "id1",
			`{"input":[],"session_id":"s","user_id":"u","stream":false,"id":"r"}`:               "u/s",
			`{"input":[],"session_id":"s","response_id":"r"}`:                                   "s",
			`{"input":[],"session_id":7,"user_id":-8,"id":9,"stream":"False"}`:                  "-8/7",
			`{"input":[],"session_id":"s","stream":"true"}`:                                     "s",
			`{"input":[],"session_id":"s","stream":0}`:                                          "s",
			`{"input":[],"user_id":"u","stream":true,"id":null}`:                                "u/id1",
			`{"input":[],"previous_response_id":"response_t_m","session_id":"s","user_id":"s"}`: "s",
			`{"input":[],"previous_response_id":"response_t_m","user_id":"u"}`:                  "u/",
			`{"input":[],"previous_response_id":"response_t_m","session_id":"s"}`:               "/s",
		}[body]
		want.BySession, want.AutoComplete = true, true
		want.Message = got.Message
		want.Message.Command, want.Message.SenderRole, want.Message.SessionID = task.Start, task.Leader, session
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s is read as (-want +got):\n%s", body, d)
		}
		if got.Message.ID == "" || got.Message.TaskID != "" {
			t.Errorf("%s: the message has the id %q and the task %q", body, got.Message.ID, got.Message.TaskID)
		}
	}
}

// requests are requests with everything a caller may send.
var requests = [][]byte{
	[]byte(`{"input":[{"role":"user","type":"message","content":[{"type":"text","text":"hello"}]}],"session_id":"s",` +
		`"user_id":"u","stream":false,"id":"r","model":"m","tools":[{"type":"function"}],"previous_response_id":null}`),
	[]byte(`{"input":[{"role":"system","content":[{"type":"text","text":"a\nb"},` +
		`{"type":"image","image_url":"https://x/a"},` +
		`{"type":"data","data":{"a":1}},{"type":"audio","data":"QUJD","format":"mp3"},{"type":"refusal","refusal":"no"},` +
		`{"type":"file","file_data":"QUJD","filename":"f"},{"type":"video","video_url":"x"}]},` +
		`{"type":"function_call_output","role":"tool","content":[{"type":"data","data":{"call_id":"c"}}]},` +
		`{"role":"assistant","content":null}],"previous_response_id":"response_t_m"}`),
}

// TestDecode: broken requests are refused.
func TestDecode(t *testing.T) {
	translatetest.Decoder(t, func(body []byte) (translate.Call, error) { return decode(string(body)) }, requests...)
}

// FuzzDecode: no body makes the decoder fail, and everything it keeps of one is valid.
func FuzzDecode(f *testing.F) {
	for _, body := range requests {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		call, err := decode(string(body))
		if err != nil {
			return
		}
		m := &call.Message
		if m.Command != task.Start || m.ID == "" || m.SessionID == "" && call.SessionOf == "" {
			t.Errorf("%q is read as %+v", body, call)
		}
		if !json.Valid(task.AppendMessage(nil, m)) {
			t.Errorf("%q makes a message that is no JSON: %+v", body, m)
		}
	})
}

// TestDecodeInput tests the items of a request's contents.
func TestDecodeInput(t *testing.T) {
	call, err := decode(string(requests[1]))
	if err != nil {
		t.Fatal(err)
	}
	system := json.RawMessage(`{"agentapi":{"role":"system","message":0}}`)
	mark := func(kind string) json.RawMessage {
		return json.RawMessage(`{"agentapi":{"type":"` + kind + `","role":"system","message":0}}`)
	}
	want := []task.DataItem{
		{Kind: task.TextItem, Text: "a\nb", Metadata: system},
		{Kind: task.FileItem, URI: "https://x/a", Metadata: mark(typeImage)},
		{Kind: task.DataKind, Data: json.RawMessage(`{"a":1}`), Metadata: system},
		{Kind: task.FileItem, Bytes: "QUJD", MIMEType: "audio/mpeg", Metadata: system},
		{Kind: task.TextItem, Text: "no", Metadata: mark(typeRefusal)},
		{Kind: task.FileItem, Bytes: "QUJD", Name: "f", Metadata: system},
		{Kind: task.FileItem, URI: "x", Metadata: mark(typeVideo)},
		{Kind: task.DataKind, Data: json.RawMessage(`{"call_id":"c"}`), Metadata: json.RawMessage(
			`{"agentapi":{"role":"tool","type":"function_call_output","message":1}}`)},
	}
	if d := cmp.Diff(want, call.Message.DataItems); d != "" {
		t.Errorf("the contents are read as (-want +got):\n%s", d)
	}
	call, err = decode(string(requests[0]))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(call.Message.Extensions); got != `{"agentapi":{"model":"m","tools":[{"type":"function"}]}}` {
		t.Errorf("the extensions are %s", got)
	}
}

// TestIsInSession: the names in a request beside a response must be those of the response.
func TestIsInSession(t *testing.T) {
	s := server{}
	for _, tc := range []struct {
		user, session string // of the request
		of            string // the conversation of the response
		want          bool
	}{
		{"ann", "", "ann/tea", true}, {"bob", "", "ann/tea", false}, {"", "tea", "ann/tea", true},
		{"", "coffee", "ann/tea", false}, {"ann", "tea", "ann/tea", true}, {"bob", "tea", "ann/tea", false},
		{"ann", "coffee", "ann/tea", false}, {"tea", "", "tea", true}, {"", "tea", "tea", true}, {"bob", "", "tea", false},
		{"a/b", "", "a%2Fb/c/d", true}, {"", "c/d", "a%2Fb/c/d", true}, {"a", "", "a%2Fb/c/d", false},
		{"", "d", "a%2Fb/c/d", false},
	} {
		if got := s.IsInSession(conversation(tc.user, tc.session), tc.of); got != tc.want {
			t.Errorf("%q and %q beside a response of %q: %v", tc.user, tc.session, tc.of, got)
		}
	}
}

// TestDecodeRefuses tests the refusals of requests, and the answers to them.
func TestDecodeRefuses(t *testing.T) {
	in := func(message string) string { return `{"input":[` + message + `]}` }
	detail := func(is mismatch, loc string) string {
		return `{"detail":[{"type":"` + string(is) + `","loc":["body"` + loc + `],"msg":"` + typeSentences[is] + `"`
	}
	invalid := func(field string) string { return `{"error":"1 validation error for AgentRequest\n` + field + `\n` }
	for body, want := range map[string]string{
		`[]`:                                    detail(noObject, ""),
		`"x"`:                                   detail(noObject, ""),
		`null`:                                  detail(noObject, ""),
		`{"input":{}}`:                          detail(noList, `,"input"`),
		`{"input":[],"stream":"maybe"}`:         detail(noFlag, `,"stream"`),
		`{"input":[],"session_id":[]}`:          detail(noText, `,"session_id"`),
		`{"input":[],"user_id":1.0}`:            detail(noText, `,"user_id"`),
		`{"input":[],"session_id":1e3}`:         detail(noText, `,"session_id"`),
		`{"input":[],"stream":2}`:               detail(noFlag, `,"stream"`),
		`{"input":[],"n":"one"}`:                detail(noInteger, `,"n"`),
		`{"input":[],"id":{}}`:                  detail(noText, `,"id"`),
		`{"input":[],"response_id":1.5}`:        detail(noText, `,"response_id"`),
		`{"input":[],"previous_response_id":1}`: detail(noText, `,"previous_response_id"`),
		`{"input":[],"n":1.5}`:                  detail(noInteger, `,"n"`),
		`{"input":[],"max_tokens":true}`:        detail(noInteger, `,"max_tokens"`),
		`{"input":[],"temperature":"warm"}`:     detail(noNumber, `,"temperature"`),
		in(`1`):                                 detail(noObject, `,"input",0`),
		in(`null`):                              detail(noObject, `,"input",0`),
		in(`{"role":1}`):                        detail(noText, `,"input",0,"role"`),
		in(`{"type":1}`):                        detail(noText, `,"input",0,"type"`),
		in(`{},{"content":[1]}`):                detail(noObject, `,"input",1,"content",0`),
		in(`{"content":[{"text":1}]}`):          detail(noText, `,"input",0,"content",0,"text"`),
		in(`{"content":[{"type":[]}]}`):         detail(noText, `,"input",0,"content",0,"type"`),
		`{}`:                                    invalid("input"),
		`{"input":null}`:                        invalid("input"),
		`{"input":[],"n":0}`:                    invalid("n"),
		`{"input":[],"n":6}`:                    invalid("n"),
		in(`{"role":"root"}`):                   invalid("input.0.role"),
		in(`{"role":"User"}`):                   invalid("input.0.role"),
		in(`{"content":[{"type":"hologram"}]}`): invalid("input.0.content.0.type"),
	} {
		call, err := decode(body)
		if err == nil {
			t.Errorf("%s is read as %+v", body, call)
			continue
		}
		out := string(server{}.AppendError(nil, nil, err))
		status := server{}.Status(err)
		if !strings.HasPrefix(out, want) || !json.Valid([]byte(out)) || (status == 422) == call.Stream {
			t.Errorf("%s is answered with %d (a stream: %v) and\n%s, want\n%s", body, status, call.Stream, out, want)
		}
	}
	for _, body := range []string{
		`{"input":[],"n":1,"max_tokens":1,"temperature":0}`, `{"input":[],"n":"5","temperature":2}`,
		`{"input":[],"max_tokens":0,"temperature":-0.1}`, `{"input":[],"max_tokens":"-1","temperature":"2.01"}`,
		`{"input":[],"max_tokens":100.0}`,
		`{"input":[],"n":null,"max_tokens":null,"temperature":null,"stream":null,"user_id":null}`,
		in(`{"role":"user"},{"role":"assistant"},{"role":"system"},{"role":"tool"},{"role":null,"content":null},{}`),
	} {
		if _, err := decode(body); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}
