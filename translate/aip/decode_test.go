// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

func TestDecode(t *testing.T) {
	at := func(zone *time.Location, ns int) time.Time { return time.Date(2025, 9, 1, 11, 58, 0, ns, zone) }
	start := func(change func(*translate.Call)) translate.Call {
		c := translate.Call{Call: task.Call{Message: task.Message{
			Command: task.Start, SenderRole: task.Leader, SenderID: "leader", TaskID: "t1"}}}
		change(&c)
		return c
	}
	for name, tt := range map[string]struct {
		body []byte
		want translate.Call
	}{
		"least": {body("rpc", least(task.Start)), start(func(c *translate.Call) {})},
		"full": {body("rpc", full()), translate.Call{Call: task.Call{
			Message: task.Message{
				ID: "m1", SentAt: at(beijing, 25e7), SenderRole: task.Leader, SenderID: "leader", Mentions: []string{"a", "b"},
				Command: task.Start,
				Params: json.RawMessage(`{"awaitingCompletionTimeout":3000,"awaitingInputTimeout":2000,` +
					`"maxProductsBytes":4096,"responseTimeout":1000,"x":[1]}`),
				TaskID:    "t1",
				SessionID: "s1",
				GroupID:   "g1",
				DataItems: []task.DataItem{
					{Kind: task.TextItem, Text: "hello\n", Metadata: json.RawMessage(`{"k":"v"}`)},
					{Kind: task.FileItem, Name: "n", MIMEType: "a/b", URI: "https://example.com/"},
					{Kind: task.FileItem, Bytes: "QUI="},
					{Kind: task.DataKind, Data: json.RawMessage(`{"a":[1,2]}`)},
				},
			},
			Terms: task.Terms{Response: time.Second, AwaitingInput: 2 * time.Second, AwaitingCompletion: 3 * time.Second,
				MaxProductsBytes: 4096},
		}}},
		"nulls": {body("rpc", with(least(task.Start), object{
			"type": nil, "id": nil, "sentAt": nil, "senderRole": nil, "mentions": nil, "commandParams": nil, "dataItems": nil,
			"sessionId": nil, "groupId": nil,
		})), start(func(c *translate.Call) {})},
		"null params": {body("rpc", with(least(task.Start), object{"commandParams": object{
			"responseTimeout": nil, "awaitingInputTimeout": nil, "awaitingCompletionTimeout": nil, "maxProductsBytes": nil,
		}})), start(func(c *translate.Call) {
			c.Message.Params = json.RawMessage(`{"awaitingCompletionTimeout":null,"awaitingInputTimeout":null,` +
				`"maxProductsBytes":null,"responseTimeout":null}`)
		})},
		"large params": {body("rpc", with(least(task.Start), object{"commandParams": object{
			"responseTimeout": json.Number("1.0"), "awaitingInputTimeout": json.Number("9223372036855"),
			"awaitingCompletionTimeout": json.Number("1e300"),
			"maxProductsBytes":          json.Number("1e300"),
		}})), start(func(c *translate.Call) {
			c.Message.Params = json.RawMessage(`{"awaitingCompletionTimeout":1e300,"awaitingInputTimeout":9223372036855,` +
				`"maxProductsBytes":1e300,"responseTimeout":1.0}`)
			c.Terms = task.Terms{Response: time.Millisecond, AwaitingInput: math.MaxInt64, AwaitingCompletion: math.MaxInt64,
				MaxProductsBytes: math.MaxInt64}
		})},
		"params of other commands": {body("rpc",
			with(least(task.Continue), object{"commandParams": object{"responseTimeout": "soon", "lastEventSeq": -1}})),
			start(func(c *translate.Call) {
				c.Message.Command = task.Continue
				c.Message.Params = json.RawMessage(`{"lastEventSeq":-1,"responseTimeout":"soon"}`)
			})},
		"get": {body("rpc", with(least(task.Get), object{"commandParams": object{
			"lastMessageSentAt": "2025-09-01T11:58:00", "lastStateChangedAt": "2025-09-01T11:58:00Z",
		}})), start(func(c *translate.Call) {
			c.Message.Command = task.Get
			c.Message.Params = json.RawMessage(`{"lastMessageSentAt":"2025-09-01T11:58:00",` +
				`"lastStateChangedAt":"2025-09-01T11:58:00Z"}`)
			c.MessagesAfter, c.StatesAfter = at(beijing, 0), at(time.UTC, 0)
		})},
		"re-stream": {body("stream", with(least(task.ReStream),
			object{"commandParams": object{"lastEventSeq": json.Number("25.0")}})),
			start(func(c *translate.Call) {
				c.Stream, c.Message.Command, c.AfterSeq = true, task.ReStream, 25
				c.Message.Params = json.RawMessage(`{"lastEventSeq":25.0}`)
			})},
		"re-stream from the beginning": {body("stream", with(least(task.ReStream),
			object{"commandParams": object{"lastEventSeq": nil}})),
			start(func(c *translate.Call) {
				c.Stream, c.Message.Command = true, task.ReStream
				c.Message.Params = json.RawMessage(`{"lastEventSeq":null}`)
			})},
		"mentions all": {body("rpc", with(least(task.Start), object{"mentions": "all"})),
			start(func(c *translate.Call) { c.Message.Mentions = []string{"all"} })},
		"longest ids": {body("rpc", with(least(task.Start), object{"taskId": strings.Repeat("é", 128),
			"sessionId": strings.Repeat("s", 256)})),
			start(func(c *translate.Call) {
				c.Message.TaskID, c.Message.SessionID = strings.Repeat("é", 128), strings.Repeat("s", 256)
			})},
		"other members": {body("rpc", with(least(task.Start), object{"x": object{"taskId": "other"}, "TaskId": "other"})),
			start(func(c *translate.Call) {
				c.Message.Extensions = json.RawMessage(`{"aip":{"x":{"taskId":"other"}}}`) // TaskId might be taken for a taskId
			})},
		"members of other kinds of item": {body("rpc", with(least(task.Start), object{"dataItems": []any{
			object{"type": "text", "text": "", "uri": 1, "data": "x"}, object{"type": "file", "uri": "u", "bytes": "",
				"name": nil, "text": 1}}})),
			start(func(c *translate.Call) {
				c.Message.DataItems = []task.DataItem{{Kind: task.TextItem}, {Kind: task.FileItem, URI: "u"}}
			})},
		"line breaks between values": {[]byte("{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"rpc\"," +
			"\"params\":{\"message\":{\"command\":\"start\",\"senderId\":\"leader\"," +
			"\"taskId\":\"\\u00741\",\"commandParams\":{\n\t\"a\": \"\\n\\u2028\\/\",\r\n\"b\": 1.0}," +
			"\"dataItems\":[{\"type\":\"data\",\"data\":{\n},\"metadata\":{ \"a\" : 1 }}]}}}"),
			start(func(c *translate.Call) {
				c.Message.Params = json.RawMessage(`{"a":"\n\u2028\/","b":1.0}`)
				c.Message.DataItems = []task.DataItem{{Kind: task.DataKind, Data: json.RawMessage(`{}`),
					Metadata: json.RawMessage(`{ "a" : 1 }`)}}
			})},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeBody(t, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.AnswerIsProduct = tt.want.Message.Command == task.Start
			tt.want.Direct = tt.want.Message.Command == task.Start || tt.want.Message.Command == task.Continue
			if d := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	item := func(members object) []byte {
		return body("rpc", with(least(task.Start), object{"dataItems": []any{object{"type": "text", "text": "fine"},
			members}}))
	}
	startParams := func(p object) []byte { return body("rpc", with(least(task.Start), object{"commandParams": p})) }
	getParams := func(p object) []byte { return body("rpc", with(least(task.Get), object{"commandParams": p})) }
	reParams := func(p object) []byte { return body("stream", with(least(task.ReStream), object{"commandParams": p})) }
	const m = "params.message."
	for name, tt := range map[string]struct {
		body  []byte
		kind  task.Kind
		field string
	}{
		"group":       {params("group", object{}), task.GroupNotSupported, ""},
		"set nothing": {params("notification/set", []any{}), task.InvalidParams, "params"},
		"set without task": {params("notification/set", object{"url": "https://a", "token": "t"}), task.InvalidParams,
			"params.taskId"},
		"set without url": {params("notification/set", object{"taskId": "t", "token": "t"}), task.InvalidParams,
			"params.url"},
		"set without token": {params("notification/set", object{"taskId": "t", "url": "https://a"}), task.InvalidParams,
			"params.token"},
		"set long url": {params("notification/set", object{"taskId": "t", "url": strings.Repeat("x", 2049),
			"token": "t"}), task.InvalidParams, "params.url"},
		"set long token": {params("notification/set", object{"taskId": "t", "url": "https://a",
			"token": strings.Repeat("x", 4097)}), task.InvalidParams, "params.token"},
		"set id a number": {params("notification/set", object{"taskId": "t", "url": "https://a", "token": "t",
			"id": 1}), task.InvalidParams, "params.id"},
		"get nothing":      {params("notification/get", []any{}), task.InvalidParams, "params"},
		"get without task": {params("notification/get", object{}), task.InvalidParams, "params.taskId"},
		"delete without task": {params("notification/delete", object{"notificationConfigId": "n"}), task.InvalidParams,
			"params.taskId"},
		"notify a get":        {body("notification/start", least(task.Get)), task.InvalidParams, m + "command"},
		"no webhook is named": {body("notification/start", least(task.Start)), task.InvalidParams, m + "commandParams"},
		"notify no id": {body("notification/start", with(least(task.Start), object{"commandParams": object{}})),
			task.InvalidParams, m + "commandParams.notificationConfigId"},
		"notify on a text": {body("notification/start", with(least(task.Start),
			object{"commandParams": object{"notificationConfigId": "n", "notifyOnStates": "working"}})),
			task.InvalidParams, m + "commandParams.notifyOnStates"},
		"notify on Working": {body("notification/start", with(least(task.Start),
			object{"commandParams": object{"notificationConfigId": "n", "notifyOnStates": []any{"failed", "Working"}}})),
			task.InvalidParams, m + "commandParams.notifyOnStates[1]"},
		"notification":   {params("notification", object{}), task.MethodNotFound, ""},
		"RPC":            {params("RPC", object{}), task.MethodNotFound, ""},
		"no method":      {params("", object{}), task.MethodNotFound, ""},
		"other protocol": {params("message/send", object{}), task.MethodNotFound, ""},

		"no params":    {[]byte(`{"jsonrpc":"2.0","id":1,"method":"rpc"}`), task.InvalidParams, "params"},
		"array params": {params("rpc", []any{object{"message": least(task.Start)}}), task.InvalidParams, "params"},
		"no message":   {params("rpc", object{"Message": least(task.Start)}), task.InvalidParams, "params.message"},
		"null message": {body("rpc", nil), task.InvalidParams, "params.message"},
		"text message": {body("rpc", "start"), task.InvalidParams, "params.message"},
		"list message": {body("rpc", []any{}), task.InvalidParams, "params.message"},

		"type":        {body("rpc", with(full(), object{"type": "task"})), task.InvalidParams, m + "type"},
		"type number": {body("rpc", with(full(), object{"type": 1})), task.InvalidParams, m + "type"},
		"senderRole": {body("rpc", with(full(), object{"senderRole": "partner"})), task.InvalidParams,
			m + "senderRole"},
		"senderRole bool": {body("rpc", with(full(), object{"senderRole": true})), task.InvalidParams, m + "senderRole"},
		"no command":      {body("rpc", with(full(), object{"command": absence{}})), task.InvalidParams, m + "command"},
		"null command":    {body("rpc", with(full(), object{"command": nil})), task.InvalidParams, m + "command"},
		"PascalCase":      {body("rpc", with(full(), object{"command": "Start"})), task.InvalidParams, m + "command"},
		"empty command":   {body("rpc", with(full(), object{"command": ""})), task.InvalidParams, m + "command"},
		"command list": {body("rpc", with(full(), object{"command": []any{"start"}})), task.InvalidParams,
			m + "command"},
		"re-stream by rpc": {body("rpc", least(task.ReStream)), task.InvalidParams, m + "command"},
		"get by stream":    {body("stream", least(task.Get)), task.InvalidParams, m + "command"},
		"cancel by stream": {body("stream", least(task.Cancel)), task.InvalidParams, m + "command"},
		"complete, stream": {body("stream", least(task.Complete)), task.InvalidParams, m + "command"},
		"id number":        {body("rpc", with(full(), object{"id": 1})), task.InvalidParams, m + "id"},
		"no senderId":      {body("rpc", with(full(), object{"senderId": absence{}})), task.InvalidParams, m + "senderId"},
		"empty senderId":   {body("rpc", with(full(), object{"senderId": ""})), task.InvalidParams, m + "senderId"},
		"senderId object":  {body("rpc", with(full(), object{"senderId": object{}})), task.InvalidParams, m + "senderId"},
		"no taskId":        {body("rpc", with(full(), object{"taskId": absence{}})), task.InvalidParams, m + "taskId"},
		"null taskId":      {body("rpc", with(full(), object{"taskId": nil})), task.InvalidParams, m + "taskId"},
		"empty taskId":     {body("rpc", with(full(), object{"taskId": ""})), task.InvalidParams, m + "taskId"},
		"taskId number":    {body("rpc", with(full(), object{"taskId": 7})), task.InvalidParams, m + "taskId"},
		"taskId long": {body("rpc", with(full(), object{"taskId": strings.Repeat("t", 257)})), task.InvalidParams,
			m + "taskId"},
		"taskId long UTF-8": {body("rpc", with(full(), object{"taskId": strings.Repeat("é", 129)})), task.InvalidParams,
			m + "taskId"},
		"taskId NUL": {body("rpc", with(full(), object{"taskId": "a\x00"})), task.InvalidParams, m + "taskId"},
		"taskId DEL": {body("rpc", with(full(), object{"taskId": "a\x7f"})), task.InvalidParams, m + "taskId"},
		"taskId NEL": {body("rpc", with(full(), object{"taskId": "a\u0085"})), task.InvalidParams, m + "taskId"},
		"sessionId long": {body("rpc", with(full(), object{"sessionId": strings.Repeat("t", 257)})), task.InvalidParams,
			m + "sessionId"},
		"sessionId newline": {body("rpc", with(full(), object{"sessionId": "\n"})), task.InvalidParams, m + "sessionId"},
		"sessionId number":  {body("rpc", with(full(), object{"sessionId": 1})), task.InvalidParams, m + "sessionId"},
		"groupId number":    {body("rpc", with(full(), object{"groupId": 1})), task.InvalidParams, m + "groupId"},
		"sentAt":            {body("rpc", with(full(), object{"sentAt": "yesterday"})), task.InvalidParams, m + "sentAt"},
		"sentAt empty":      {body("rpc", with(full(), object{"sentAt": ""})), task.InvalidParams, m + "sentAt"},
		"sentAt number":     {body("rpc", with(full(), object{"sentAt": 1756699080})), task.InvalidParams, m + "sentAt"},
		"mentions text":     {body("rpc", with(full(), object{"mentions": "a"})), task.InvalidParams, m + "mentions"},
		"mentions number": {body("rpc", with(full(), object{"mentions": []any{"a", 1}})), task.InvalidParams,
			m + "mentions[1]"},
		"mentions many": {body("rpc", with(full(), object{"mentions": slices.Repeat([]any{"a"}, 1001)})),
			task.InvalidParams, m + "mentions"},

		"commandParams text": {body("rpc", with(full(), object{"commandParams": "{}"})), task.InvalidParams,
			m + "commandParams"},
		"commandParams list": {body("rpc", with(full(), object{"commandParams": []any{}})), task.InvalidParams,
			m + "commandParams"},
		"timeout half": {startParams(object{"responseTimeout": 1.5}), task.InvalidParams,
			m + "commandParams.responseTimeout"},
		"timeout text": {startParams(object{"awaitingInputTimeout": "1"}), task.InvalidParams,
			m + "commandParams.awaitingInputTimeout"},
		"timeout negative": {startParams(object{"awaitingCompletionTimeout": -1}), task.InvalidParams,
			m + "commandParams.awaitingCompletionTimeout"},
		"bytes negative": {startParams(object{"maxProductsBytes": -1e300}), task.InvalidParams,
			m + "commandParams.maxProductsBytes"},
		"bytes bool": {startParams(object{"maxProductsBytes": false}), task.InvalidParams,
			m + "commandParams.maxProductsBytes"},
		"get number": {getParams(object{"lastMessageSentAt": 0}), task.InvalidParams,
			m + "commandParams.lastMessageSentAt"},
		"get date": {getParams(object{"lastStateChangedAt": "2025-09-01"}), task.InvalidParams,
			m + "commandParams.lastStateChangedAt"},
		"seq text":     {reParams(object{"lastEventSeq": "1"}), task.InvalidParams, m + "commandParams.lastEventSeq"},
		"seq half":     {reParams(object{"lastEventSeq": 0.5}), task.InvalidParams, m + "commandParams.lastEventSeq"},
		"seq negative": {reParams(object{"lastEventSeq": -1}), task.InvalidParams, m + "commandParams.lastEventSeq"},

		"items object": {body("rpc", with(full(), object{"dataItems": object{}})), task.InvalidParams, m + "dataItems"},
		"items text":   {body("rpc", with(full(), object{"dataItems": "a"})), task.InvalidParams, m + "dataItems"},
		"items many": {body("rpc", with(full(), object{"dataItems": slices.Repeat([]any{object{"type": "text",
			"text": ""}}, 1001)})), task.InvalidParams, m + "dataItems"},
		"item null": {body("rpc", with(full(), object{"dataItems": []any{nil}})), task.InvalidParams,
			m + "dataItems[0]"},
		"item text": {body("rpc", with(full(), object{"dataItems": []any{"a"}})), task.InvalidParams,
			m + "dataItems[0]"},
		"no type":     {item(object{"text": "a"}), task.InvalidParams, m + "dataItems[1].type"},
		"other type":  {item(object{"type": "audio"}), task.InvalidParams, m + "dataItems[1].type"},
		"no text":     {item(object{"type": "text"}), task.InvalidParams, m + "dataItems[1].text"},
		"text number": {item(object{"type": "text", "text": 1}), task.InvalidParams, m + "dataItems[1].text"},
		"empty file":  {item(object{"type": "file"}), task.InvalidParams, m + "dataItems[1].uri"},
		"file with both": {item(object{"type": "file", "uri": "u", "bytes": "QUI="}), task.InvalidParams,
			m + "dataItems[1].bytes"},
		"uri number":  {item(object{"type": "file", "uri": 1}), task.InvalidParams, m + "dataItems[1].uri"},
		"name number": {item(object{"type": "file", "uri": "u", "name": 1}), task.InvalidParams, m + "dataItems[1].name"},
		"mimeType list": {item(object{"type": "file", "uri": "u", "mimeType": []any{}}), task.InvalidParams,
			m + "dataItems[1].mimeType"},
		"base64 letters": {item(object{"type": "file", "bytes": "QU-_"}), task.InvalidParams, m + "dataItems[1].bytes"},
		"base64 padding": {item(object{"type": "file", "bytes": "QUI"}), task.InvalidParams, m + "dataItems[1].bytes"},
		"base64 =":       {item(object{"type": "file", "bytes": "Q==="}), task.InvalidParams, m + "dataItems[1].bytes"},
		"base64 breaks":  {item(object{"type": "file", "bytes": "QUI=\n"}), task.InvalidParams, m + "dataItems[1].bytes"},
		"no data":        {item(object{"type": "data"}), task.InvalidParams, m + "dataItems[1].data"},
		"data list":      {item(object{"type": "data", "data": []any{}}), task.InvalidParams, m + "dataItems[1].data"},
		"metadata text": {item(object{"type": "text", "text": "", "metadata": "a"}), task.InvalidParams,
			m + "dataItems[1].metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := decodeBody(t, tt.body)
			e, ok := errors.AsType[*task.Error](err)
			if !ok {
				t.Fatalf("got %+v, %v", call, err)
			}
			if e.Kind != tt.kind || e.Field != tt.field || e.Detail == "" {
				t.Errorf("got %v, want %v at %s", e, tt.kind, tt.field)
			}
			subject := tt.field[strings.LastIndexByte(tt.field, '.')+1:]
			if !strings.HasPrefix(e.Detail, subject) && !strings.Contains(tt.field, "[") && tt.field != m+"command" {
				t.Errorf("%q does not begin with its subject", e.Detail)
			}
			if d := cmp.Diff(translate.Call{}, call); d != "" {
				t.Errorf("a call beside the error:\n%s", d)
			}
		})
	}
}

func TestParseTime(t *testing.T) {
	for s, want := range map[string]string{
		"2025-09-01T14:30:00+08:00":      "2025-09-01T14:30:00+08:00",
		"2025-09-01T14:30:00":            "2025-09-01T14:30:00+08:00",
		"2025-09-01T14:30":               "2025-09-01T14:30:00+08:00",
		"2025-09-01T14:30Z":              "2025-09-01T14:30:00Z",
		"2025-09-01T14:30:00Z":           "2025-09-01T14:30:00Z",
		"2025-09-01T14:30:00+00:00":      "2025-09-01T14:30:00Z",
		"2025-09-01T14:30:00.5":          "2025-09-01T14:30:00.5+08:00",
		"2025-09-01T14:30:00,5Z":         "2025-09-01T14:30:00.5Z",
		"2025-09-01T14:30:00.123456789Z": "2025-09-01T14:30:00.123456789Z",
		"2025-09-01T14:30:00.1234567891": "2025-09-01T14:30:00.123456789+08:00",
		"2025-09-01T14:30:00-0330":       "2025-09-01T14:30:00-03:30",
		"2025-09-01T14:30:00+14":         "2025-09-01T14:30:00+14:00",
		"2025-09-01T14:30:00+23:59":      "2025-09-01T14:30:00+23:59",
		"2024-02-29T00:00:00Z":           "2024-02-29T00:00:00Z",
		"9999-12-31T23:59:59-23:59":      "9999-12-31T23:59:59-23:59",

		"": "", "2025-09-01": "", "20250901T143000Z": "", "2025-09-01 14:30:00Z": "", "2025-09-01T14": "",
		"2025-13-01T14:30:00Z": "", "2025-02-29T14:30:00Z": "", "2025-09-01T24:00:00Z": "", "2025-09-01T14:60:00Z": "",
		"2025-09-01T14:30:60Z": "", "2025-09-01T14:30:00+24:00": "", "2025-09-01T14:30:00+08:60": "",
		"2025-09-01T14:30:00+8:00": "",
		"2025-09-01T14:30:00+":     "", "2025-09-01T14:30:00+08:": "", "2025-09-01T14:30:00+08:00x": "",
		"2025-09-01T14:30:00ZZ":  "",
		"2025-09-01T4:30:00.25Z": "", "2025-09-01T14:30:00.Z": "", "2025-09-01T14:30:00GMT": "", "2025-09-01T14:30:00z": "",
		"2025-09-01T14:30:0Z": "", "12025-09-01T14:30:00Z": "", "2025-09-01T14:30:+0Z": "",
	} {
		at, ok := parseTime(s)
		got := ""
		if ok {
			got = strings.Trim(string(task.AppendTime(nil, at)), `"`)
			var back time.Time
			if err := back.UnmarshalJSON(task.AppendTime(nil, at)); err != nil || !back.Equal(at) {
				t.Errorf("%q: what is stored cannot be read again: %v", s, err)
			}
		}
		if got != want {
			t.Errorf("parseTime(%q) = %q, want %q", s, got, want)
		}
	}
}

// FuzzDecode: a decoded request can be written, and is then decoded to the same.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"02-rpc-start.request.json", "06-rpc-get.request.json",
		"14-stream-restream-after-2.request.json", "25-group-invite.request.json"} {
		f.Add(vector(f, name))
	}
	f.Add(body("rpc", full()))
	f.Add(body("rpc", with(least(task.Start), object{"x": nil, "y": object{"z": 1}, "Task_ID": 1,
		"metadata":  object{"aip": object{"w": 1}, "a2a": 2},
		"dataItems": []any{object{"type": "text", "text": "t", "x": 1, "Text": "no", "metadata": object{"aip": 1}}}})))
	f.Fuzz(func(t *testing.T, data []byte) {
		req, bad := jsonrpc.Parse(data, jsonrpc.Limits{})
		if bad != nil {
			return
		}
		want, err := decodeRequest(&req)
		if err != nil {
			if e, ok := errors.AsType[*task.Error](err); !ok || e.Detail == "" {
				t.Fatalf("refused without a kind or a sentence: %v", err)
			}
			return
		}
		again := encode(req.Method, &want.Message)
		if strings.ContainsAny(string(again), "\n\r") {
			t.Fatalf("more than one line: %q", again)
		}
		got, err := decodeBody(t, again)
		if err != nil {
			t.Fatalf("%v, for\n%s", err, again)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), unknown); d != "" {
			t.Fatal(d)
		}
		// An unknown member never takes the place of a known one. But for this, nothing is lost.
		more, err := decodeBody(t, encode(req.Method, &got.Message))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(got, more, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkParseDecode(b *testing.B) {
	for name, body := range map[string][]byte{"start": vector(b, "02-rpc-start.request.json"),
		"full": body("rpc", full())} {
		var compact json.RawMessage = body
		body, err := json.Marshal(compact)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
				if bad != nil {
					b.Fatal(bad)
				}
				if _, err := decodeRequest(&req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
