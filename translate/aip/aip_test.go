// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

func TestServer(t *testing.T) {
	var requests [][]byte
	for _, name := range []string{
		"16-notification-set.request.json", "18-notification-delete.request.json", "20-notification-get.request.json",
		"22-notification-start.request.json",
		"02-rpc-start.request.json", "04-rpc-continue.request.json", "06-rpc-get.request.json",
		"08-rpc-complete.request.json",
		"10-rpc-cancel.request.json", "12-stream-start.request.json", "14-stream-restream-after-2.request.json",
	} {
		requests = append(requests, vector(t, name))
	}
	requests = append(requests, body("rpc", full()))
	translatetest.Server(t, Server(), requests...)
}

func TestRoute(t *testing.T) {
	for path, want := range map[string]struct {
		method string
		ok     bool
	}{
		"":    {"", true},
		"rpc": {"rpc", true}, "stream": {"stream", true}, "group": {"group", true},
		"notification/set": {"notification/set", true}, "notification/delete": {"notification/delete", true},
		"notification/get": {"notification/get", true}, "notification/start": {"notification/start", true},
		"RPC": {}, "/rpc": {}, "rpc/": {}, "notification": {}, "notification/stop": {}, "tasks/send": {},
	} {
		got, ok := Server().Route("POST", path)
		if got.Method != want.method || ok != want.ok || got.Allow != "" || got.Unenveloped {
			t.Errorf("Route(%q) = %+v, %v, want %+v", path, got, ok, want)
		}
		if got, ok := Server().Route("GET", path); ok && got.Allow != "POST" {
			t.Errorf("GET %q is allowed: %+v", path, got)
		}
	}
}

type object = map[string]any

// least returns a message with no more than it needs.
func least(command task.Command) object {
	return object{"command": string(command), "senderId": "leader", "taskId": "t1"}
}

// full returns a message with everything in AIP.
func full() object {
	return object{
		"type": "message", "id": "m1", "sentAt": "2025-09-01T11:58:00.25+08:00", "senderRole": "leader", "senderId": "leader",
		"mentions": []any{"a", "b"}, "command": "start", "taskId": "t1", "sessionId": "s1", "groupId": "g1",
		"commandParams": object{
			"responseTimeout": 1000, "awaitingInputTimeout": 2000, "awaitingCompletionTimeout": 3000, "maxProductsBytes": 4096,
			"x": []any{1},
		},
		"dataItems": []any{
			object{"type": "text", "text": "hello\n", "metadata": object{"k": "v"}},
			object{"type": "file", "name": "n", "mimeType": "a/b", "uri": "https://example.com/"},
			object{"type": "file", "bytes": "QUI="},
			object{"type": "data", "data": object{"a": []any{1, 2}}},
		},
	}
}

// with returns m with more members. One of value absence{} is taken away.
func with(m object, more object) object {
	m = maps.Clone(m)
	for k, v := range more {
		if v == (absence{}) {
			delete(m, k)
		} else {
			m[k] = v
		}
	}
	return m
}

type absence struct{}

func body(method string, message any) []byte {
	return params(method, object{"message": message})
}

func params(method string, params any) []byte {
	return jsonOf(object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

func jsonOf(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func decodeBody(t testing.TB, body []byte) (translate.Call, error) {
	t.Helper()
	req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
	if bad != nil {
		t.Fatalf("%v, for\n%s", bad, body)
	}
	return decodeRequest(&req)
}

func decodeRequest(req *jsonrpc.Request) (translate.Call, error) {
	return Server().Decode(&translate.Request{Request: *req, HTTP: "POST"})
}

// TestEventRoundTrip: a Leader reads the events in a stream as they happened.
func TestEventRoundTrip(t *testing.T) {
	for _, state := range translatetest.Tasks() {
		if !json.Valid(task.AppendString(nil, state.ID)) || strings.ToValidUTF8(state.ID, "") != state.ID {
			continue // JSON cannot say it
		}
		for _, ev := range translatetest.Events(&state) {
			res, bad := jsonrpc.ParseResponse(Server().NewStream(jsonrpc.ID("1"), nil, &state).Event(nil, &ev).Data,
				jsonrpc.Limits{})
			if bad != nil {
				t.Fatal(bad)
			}
			ev.Cause = nil // no caller is shown it
			got, of := decodeEvent(t, res)
			if d := cmp.Diff(ev, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			if ev.Message == nil && (of.ID != state.ID || of.SessionID != state.SessionID) {
				t.Errorf("of task %q in session %q, want %q in %q", of.ID, of.SessionID, state.ID, state.SessionID)
			}
		}
	}
}

// TestMessageRoundTrip: a message written and read again is the same.
func TestMessageRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		want := randomMessage(rnd)
		method := methodRPC
		if !answers(want.Command) {
			method = methodStream
		}
		got, err := decodeBody(t, encode(method, &want))
		if err != nil {
			t.Fatalf("%v, for\n%+v", err, want)
		}
		if d := cmp.Diff(want, got.Message, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	}
}

func encode(method string, m *task.Message) []byte {
	dst := jsonrpc.BeginRequest(nil, jsonrpc.ID("1"), method)
	dst = append(dst, `{"message":`...)
	dst = form.AppendMessage(dst, m)
	return jsonrpc.End(append(dst, '}'))
}

func randomMessage(rnd *rand.Rand) task.Message {
	pick := func(s ...string) string { return s[rnd.IntN(len(s))] }
	id := func() string { return pick("a", "agent-1", "北京", `q"\/`, strings.Repeat("i", 256), "<&>\u2028") }
	optional := func() string { return pick("", id()) }
	text := func() string { return pick("", "a\nb\t\x00\"\\", "😀 é \u2029", strings.Repeat("长", 50), id()) }
	raw := func() json.RawMessage {
		return json.RawMessage(pick("", "{}", `{"a":[1.0,1e3,null,{"b":"\n\u00e9"}]}`, `{ "spaced" : true }`))
	}
	m := task.Message{
		Extensions: json.RawMessage(pick("", "", `{"aip":{"x":[1.0,{"y":null}]}}`, `{"a2a":{"message":{}},"aip":{"x":1}}`)),
		ID:         optional(), SenderRole: task.Leader, SenderID: id(), TaskID: id(), SessionID: optional(),
		GroupID: optional(),
		Command: task.Commands()[rnd.IntN(6)], Params: raw(),
		SentAt: time.Unix(rnd.Int64N(4e9), rnd.Int64N(1e9)).In(time.FixedZone("", 60*(rnd.IntN(28*60)-14*60))),
	}
	for range rnd.IntN(3) {
		m.Mentions = append(m.Mentions, id())
	}
	for range rnd.IntN(4) {
		it := task.DataItem{Metadata: raw()}
		if rnd.IntN(5) == 0 {
			it.Metadata = json.RawMessage(`{"a":1,"aip":{"x":[{}]}}`)
		}
		switch rnd.IntN(4) {
		case 0:
			it.Kind, it.Text = task.TextItem, text()
		case 1:
			it.Kind, it.Name, it.MIMEType, it.URI = task.FileItem, text(), text(), id()
		case 2:
			it.Kind, it.Name, it.Bytes = task.FileItem, text(), pick("QQ==", "QUI=", "QUJD", "+/+/")
		case 3:
			it.Kind = task.DataKind
			for len(it.Data) == 0 {
				it.Data = raw()
			}
		}
		m.DataItems = append(m.DataItems, it)
	}
	return m
}

// unknown leaves out members without a field.
var unknown = cmp.Options{cmpopts.IgnoreFields(task.Message{}, "Extensions"),
	cmpopts.IgnoreFields(task.DataItem{}, "Metadata")}
